"""Apache CloudStack, as far as Cloudwit talks to it: every signature is computed anew, and clients of others judge it (`judge.py`)."""
