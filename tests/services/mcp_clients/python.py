"""What a client of a Python SDK sees of the service at URL, as one line of JSON.

usage: URL=… TOKEN=… python python.py v1|v2 http|sse|auto|fastmcp

Before that it says `cancel` when a call is to come under way that it then cancels, and `restart` when the service may restart, and
goes on with each line on stdin.
"""

import contextlib
import json
import os
import sys

import anyio

SDK, KIND = sys.argv[1:]
URL = os.environ["URL"]
HEADERS = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
NAVIGATE = ("browser_navigate", {"url": "https://example.org/"})


async def told(what):
    print(what, flush=True)
    await anyio.to_thread.run_sync(sys.stdin.readline)


@contextlib.asynccontextmanager
async def v1():
    import httpx
    from mcp import ClientSession, types
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    class Session(ClientSession):
        protocol_version = server_info = None

        async def cancel(self, scope):
            """This SDK leaves it to the application to say so, and to wait no longer."""
            params = types.CancelledNotificationParams(requestId=self._request_id - 1)
            note = types.CancelledNotification(method="notifications/cancelled", params=params)
            await self.send_notification(types.ClientNotification(note))
            scope.cancel()

    async with contextlib.AsyncExitStack() as stack:
        if KIND == "sse":
            transport = sse_client(URL, headers=HEADERS)
        else:
            http = await stack.enter_async_context(httpx.AsyncClient(headers=HEADERS, timeout=60))
            transport = streamable_http_client(URL, http_client=http)
        read, write, *_ = await stack.enter_async_context(transport)
        session = await stack.enter_async_context(Session(read, write))
        begun = await session.initialize()
        session.protocol_version, session.server_info = begun.protocolVersion, begun.serverInfo
        yield session


@contextlib.asynccontextmanager
async def v2():
    import httpx2
    from mcp import Client
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    class Cancelling(Client):
        async def cancel(self, scope):
            scope.cancel()

    async with contextlib.AsyncExitStack() as stack:
        if KIND == "sse":
            transport = sse_client(URL, headers=HEADERS)
        else:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=HEADERS, timeout=60))
            transport = streamable_http_client(URL, http_client=http)
        client = Cancelling(transport, mode="legacy" if KIND == "http" else "auto")
        yield await stack.enter_async_context(client)


@contextlib.asynccontextmanager
async def fastmcp():
    """With nothing but the address, from which it concludes how to speak."""
    from fastmcp import Client

    class Cancelling(Client):
        async def cancel(self, scope):
            scope.cancel()

        async def call_tool(self, name, arguments):
            return await self.call_tool_mcp(name, arguments)

    async with Cancelling(URL, auth=os.environ["TOKEN"]) as client:
        yield client


CONNECT = fastmcp if KIND == "fastmcp" else v1 if SDK == "v1" else v2


def text(result):
    return result.content[0].text


def code(error):
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return getattr(error, "code", None) or error.error.code


async def exercise():
    facts = {}
    # A stream that was lost ends clients of HTTP+SSE, with an error wherever they are.
    with contextlib.suppress(Exception if KIND in ("sse", "fastmcp") else ()):
        async with CONNECT() as client:
            listed = await client.list_tools()
            failed = await client.call_tool("browser_execute", {"script": "throw"})
            facts |= {
                "revision": client.protocol_version,
                "server": client.server_info.name,
                "tools": [tool.name for tool in getattr(listed, "tools", listed)],
                "called": text(await client.call_tool(*NAVIGATE)),
                "failed": [getattr(failed, "isError", None) or failed.is_error, text(failed)],
            }
            try:
                facts["unknown"] = f"no error: {await client.call_tool('no_such_tool', {})}"
            except Exception as error:
                facts["unknown"] = code(error)

            facts["cancelled"] = True
            async with anyio.create_task_group() as tasks:
                scope = anyio.CancelScope()

                async def doomed():
                    with scope:
                        try:
                            await client.call_tool("browser_click", {"selector": "#a"})
                            facts["cancelled"] = False
                        except Exception as error:
                            code(error)

                tasks.start_soon(doomed)
                await told("cancel")
                await client.cancel(scope)
            facts["after"] = text(await client.call_tool(*NAVIGATE))
            await told("restart")
            if KIND in ("http", "auto"):
                facts["again"] = text(await client.call_tool(*NAVIGATE))
    if "again" not in facts:
        async with CONNECT() as client:
            facts["again"] = text(await client.call_tool(*NAVIGATE))
    print(json.dumps(facts), flush=True)




anyio.run(exercise)
