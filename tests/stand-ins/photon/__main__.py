from frame import serve
from photon.controller import Controller

serve(Controller())
