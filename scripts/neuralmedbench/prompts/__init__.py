"""Items become the requests that a model is sent.

Doors
-----
assemble: CaseMaterial, assemble
coverage: check_asked, check_pictures
"""
