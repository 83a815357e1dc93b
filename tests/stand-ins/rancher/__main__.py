from frame import serve
from rancher.cattle import Cattle

serve(Cattle())
