from alibaba.cloud import Alibaba
from frame import serve

serve(Alibaba())
