from frame import serve
from gce.cloud import Gce

serve(Gce())
