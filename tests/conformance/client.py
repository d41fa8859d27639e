"""Imports all modules of the generated client, and uses it: a POST with a JSON body, a list, a refusal."""

import importlib
import os
import pkgutil
import sys

import agentyard_client
from agentyard_client.api.groups import groups_create, groups_list
from agentyard_client.models import Failure, GroupsCreateBody

modules = list(pkgutil.walk_packages(agentyard_client.__path__, "agentyard_client."))
for module in modules:
    importlib.import_module(module.name)
assert len(modules) > 300, len(modules)

client = agentyard_client.Client(
    base_url=sys.argv[1],
    cookies={"session": os.environ["AGENTYARD_SESSION"]},
    headers={"X-CSRF-Token": os.environ["AGENTYARD_CSRF"]},
)
body = GroupsCreateBody(name="engineering")
created = groups_create.sync(client=client, body=body)
assert created.success, created
listed = groups_list.sync(client=client)
assert [group.name for group in listed.groups] == ["engineering"], listed
refused = groups_create.sync(client=client, body=body)
assert isinstance(refused, Failure) and refused.code == "already_exists", refused
