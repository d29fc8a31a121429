"""pytest plugin: of all collected tests each Nth, EVERY=N."""

import os


def pytest_collection_modifyitems(items):
    items[:] = items[:: int(os.environ.get("EVERY", "1"))]
