"""Run by `netbox shell`: the user of the tests and the tokens, one of each version."""

from users.models import Token, User

user = User.objects.create_superuser("netstead", "netstead@example.test", "netstead-test")
Token.objects.create(user=user, version=1, token="0123456789abcdef0123456789abcdef01234567")
reader = Token(user=user, version=1, token="fedcba9876543210fedcba9876543210fedcba98", write_enabled=False)
reader.save()
bearer = Token(user=user, version=2, token="abcdefghijklmnopqrstuvwxyz0123456789ABCD", key="netstead0001")
bearer.save()
print("tokens are made:", bearer.key)
