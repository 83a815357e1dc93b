from frame import serve
from ovirt.engine import Engine

serve(Engine())
