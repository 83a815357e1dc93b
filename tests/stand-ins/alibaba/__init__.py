"""Alibaba Cloud, as far as Cloudwit talks to it: signatures are computed anew by the signers of the cloud's SDKs, whose models say what is allowed."""
