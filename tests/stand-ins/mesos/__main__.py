from frame import serve
from mesos.master import Masters

serve(Masters())
