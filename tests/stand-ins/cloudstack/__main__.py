from cloudstack.cloud import CloudStack
from frame import serve

serve(CloudStack())
