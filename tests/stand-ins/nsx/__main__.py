from frame import serve
from nsx.manager import Manager

serve(Manager())
