"""Mesos masters and DC/OS before them, as far as Cloudwit talks to them. Nothing of others judges it but PyJWT the signatures: it answers as Mesos' documents say."""
