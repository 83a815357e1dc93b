"""Baidu AI Cloud, as far as Cloudwit talks to it: every signature is computed anew by the signer of Baidu's SDK, whose clients judge it (`judge.py`)."""
