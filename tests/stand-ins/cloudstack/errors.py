"""Refusals in CloudStack's words: the code is the status, too."""

from frame import Refused


class ApiError(Exception):
    """What a command raises, or a job ends with."""

    def __init__(self, code, text):
        super().__init__(f"{code} {text}")
        self.code, self.text = code, text

    def value(self):
        return {"uuidList": [], "errorcode": self.code, "cserrorcode": 9999 if self.code == 431 else 4250, "errortext": self.text}

    def refused(self, key):
        return Refused(self.code, {key: self.value()})


def wrong(text):
    return ApiError(431, text)


def no_such(command, parameter, value):
    """How a parameter that is an id of nothing is refused (ParamProcessWorker)."""
    return wrong(
        f"Unable to execute API command {command.lower()} due to invalid value. Invalid parameter {parameter} value={value} due to incorrect long "
        "value format, or entity does not exist or due to incorrect parameter annotation for the field in api cmd class."
    )
