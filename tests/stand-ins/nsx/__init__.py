"""NSX, as far as Cloudwit talks to it: its Policy API for load balancers, IP pools and static routes. VMware's own client judges it (`judge.py`), and every
body is checked against that client's models."""
