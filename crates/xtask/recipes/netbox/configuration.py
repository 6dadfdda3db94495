"""NetBox for tests: everything that differs between two of them comes from the environment."""

import os

ALLOWED_HOSTS = ["*"]
DATABASES = {
    "default": {
        "NAME": "netbox",
        "USER": os.environ.get("TEST_DATABASE_USER", "postgres"),
        "HOST": os.environ["TEST_DATABASE_HOST"],
        "PORT": os.environ["TEST_DATABASE_PORT"],
        "CONN_MAX_AGE": 300,
    }
}
REDIS = {
    name: {"HOST": "127.0.0.1", "PORT": int(os.environ["TEST_REDIS_PORT"]), "DATABASE": number}
    for number, name in enumerate(("tasks", "caching"))
}
SECRET_KEY = "a-key-of-the-tests-that-protects-nothing-at-all-0123456789"
API_TOKEN_PEPPERS = {1: "a-pepper-of-the-tests-that-protects-nothing-at-all-0123456789"}
ISOLATED_DEPLOYMENT = True
