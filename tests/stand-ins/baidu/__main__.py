from baidu.cloud import Baidu
from frame import serve

serve(Baidu())
