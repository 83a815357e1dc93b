"""Photon Controller with Lightwave, as far as Cloudwit talks to them. Nothing of others judges it: it answers as the API's model and its Go client say."""
