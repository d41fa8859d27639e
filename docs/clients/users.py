import os
import httpx
from agentyard_client import Client
from agentyard_client.api.users import users_create, users_list
from agentyard_client.models import Failure, UsersCreateBody

address = os.environ.get("AGENTYARD", "http://127.0.0.1:8080")
session = httpx.Client(base_url=address)
session.post("/api/login", data={"username": "admin", "password": os.environ["PASSWORD"]}).raise_for_status()
csrf = session.get("/api/csrf").json()["csrf_token"]

client = Client(base_url=address, cookies=dict(session.cookies), headers={"X-CSRF-Token": csrf})
created = users_create.sync(client=client, body=UsersCreateBody(username="frank", wait=60))
print("refused:" if isinstance(created, Failure) else "created:", created)
print([user.username for user in users_list.sync(client=client).users])
