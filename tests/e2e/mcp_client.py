#!/usr/bin/env python3
"""A scripted client of `gpuir mcp`, for mcp.bats.

mcp_client.py tasks INDEX PLACES        50 questions to `passages` and `read`, compared with what `gpuir query` and the
                                        files say; PLACES is an index of a folder, which is here
mcp_client.py cancel INDEX              a request that waits is cancelled
mcp_client.py hostile N SEED INDEX...   N random and hostile lines: each answer is JSON-RPC, and each request has one
mcp_client.py peer INDEX                the `mcp` client of PyPI
"""

import asyncio, fcntl, json, os, random, re, struct, subprocess, sys, termios, time


class Client:
    def __init__(self, *indexes, version="2025-06-18"):
        self.p = subprocess.Popen(["gpuir", "mcp", *indexes], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.n = 0
        self.told = []  # notifications
        self.hello = self.ask(
            "initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "test", "version": "1"}
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.p.stdin.write(json.dumps(message).encode() + b"\n")
        self.p.stdin.flush()

    def ask(self, method, **params):
        self.n += 1
        self.send({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params})
        while "id" not in (answer := json.loads(self.p.stdout.readline())):
            self.told.append(answer)
        assert answer["id"] == self.n, answer
        return answer

    def call(self, tool, meta=None, **arguments):
        """What a tool says: whether it failed, what stands between the lines of data, what else it says."""
        params = {"name": tool, "arguments": arguments}
        result = self.ask("tools/call", **params, **({"_meta": meta} if meta else {}))["result"]
        text = result["content"][0]["text"]
        found = re.fullmatch(r"Between the two lines (data-[0-9a-f]{16}) stands[^\n]*\n\1\n(.*)\1\n(.*)", text, re.S)
        data, notes = found.group(2, 3) if found else ("", text)
        assert not found or found.group(1) not in data
        return result["isError"], data, notes

    def end(self):
        self.p.stdin.close()
        assert self.p.wait(60) == 0, self.p.returncode


def query(index, text, *options):
    return subprocess.run(
        ["gpuir", "query", "--mode", "andor", *options, index, text], capture_output=True, text=True
    ).stdout


def tasks(index, places):
    client = Client(index, places)
    words = [
        "wolf",
        "computer memory",
        "green plant",
        "musical instrument",
        "dog -wolf",
        "river in europe",
        "old city",
        "large bird",
        "hunt animals",
        "software",
        "stringed instrument",
        "small fish",
        "king of england",
    ]
    done = 0
    for text in words:
        failed, data, _ = client.call("search", query=text, index="wordnet", k=5, tokens=2000)
        mine = re.findall(r"^(\d+)  ([0-9.]+)  document (\d+)  ", data, re.M)
        theirs = [line.split("\t") for line in query(index, text, "-k", "5", "--tsv").splitlines()]
        assert not failed and [m[2] for m in mine] == [t[1] for t in theirs], (text, data, theirs)
        assert all(abs(float(m[1]) - float(t[2])) < 1e-4 for m, t in zip(mine, theirs))
        failed, data, _ = client.call("passages", query=text, index="wordnet", k=5, tokens=400)
        theirs = query(index, text, "-k", "5", "--passages", "--tokens", "400")
        assert not failed and data == theirs, (text, data, theirs)
        document = client.call("search", query=text, index="wordnet", k=1)[1].split()[3]
        failed, data, _ = client.call("read", index="wordnet", document=int(document), tokens=10000)
        assert not failed and len(data.splitlines()) == 2, data
        done += 3
    with open("places/long.txt", encoding="utf-8") as f:
        lines = f.read().splitlines()
    for first, last in [(1, 1), (49, 52), (50, 50), (51, 51), (120, 240), (300, 300), (299, 300), (250, 400), (1, 300)]:
        failed, data, notes = client.call("read", path=f"places/long.txt:{first}-{last}", tokens=100000)
        assert not failed and data.splitlines() == lines[first - 1 : last], (first, last, data, notes)
        done += 1
    failed, data, notes = client.call("read", path=os.path.abspath("places/long.txt") + ":48", tokens=30)
    assert data.splitlines() == lines[47:53] and "goes on with line 54" in notes, (data, notes)
    failed, data, _ = client.call("read", path="places/long.txt", tokens=100000)
    assert data.splitlines() == lines
    done += 2
    client.end()
    print(done, "tasks")


def cancel(index):
    """While the answers of the first requests fill the pipe, the last one waits, and is cancelled."""
    client = Client(index)
    for i in range(40):
        client.send(
            {
                "jsonrpc": "2.0",
                "id": f"r{i}",
                "method": "tools/call",
                "params": {
                    "name": "passages",
                    "arguments": {"query": "the of a in wolf", "mode": "or", "k": 100, "tokens": 5000},
                },
            }
        )
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "r39"}})
    while struct.unpack("i", fcntl.ioctl(client.p.stdin, termios.FIONREAD, b"\0" * 4))[0]:
        time.sleep(0.01)
    time.sleep(0.2)
    client.p.stdin.close()
    ids = [json.loads(line)["id"] for line in client.p.stdout]
    assert ids == [f"r{i}" for i in range(39)], ids
    assert client.p.wait(60) == 0


def value(r, deep=0):
    kind = r.randrange(12 if deep < 3 else 8)
    if kind < 2:
        return r.choice(
            [
                "wolf",
                "dog",
                "or",
                "and",
                "long",
                "places/long.txt:3-9",
                "../../etc/passwd",
                "\0",
                "\ud800x",
                "\x1b[31m",
                '"',
                "data-0",
                "a" * r.choice([10, 300, 70000]),
                "wolf " * 80,
                "w*",
                "\u202e",
            ]
        )
    if kind < 6:
        return r.choice([0, 1, -1, 3, 2**32 - 1, 2**32, 2**64, 1e308, 0.5, None, True, False])
    if kind < 8:
        return ""
    if kind < 10:
        return [value(r, deep + 1) for _ in range(r.randrange(4))]
    return {r.choice(["query", "", "id", "a.b", "params.name"]): value(r, deep + 1) for _ in range(r.randrange(4))}


def message(r):
    names = ["query", "index", "mode", "k", "offset", "tokens", "document", "path", "other", ""]
    good = {
        "query": "wolf dog",
        "index": "wordnet",
        "mode": "or",
        "k": 2,
        "offset": 1,
        "tokens": 50,
        "document": 3,
        "path": "places/long.txt:3",
    }
    arguments = {n: good.get(n, 1) if r.random() < 0.7 else value(r) for n in r.sample(names, r.randrange(5))}
    m = {
        "jsonrpc": "2.0",
        "id": r.choice([1, "x", 2.5, 1e99, "é"]),
        "method": r.choice(["tools/call"] * 6 + ["tools/list", "ping", "initialize", "x", "notifications/cancelled"]),
        "params": {
            "name": r.choice(["search", "passages", "read", "read", "grep"]),
            "arguments": arguments,
            "protocolVersion": "2025-03-26",
            "requestId": 1,
            "_meta": {"progressToken": r.choice([1, "p"])},
        },
    }
    for _ in range(r.choice([0, 0, 0, 1, 2])):
        m[r.choice(list(m))] = value(r)
    for _ in range(r.choice([0, 0, 0, 1])):
        m.pop(r.choice(list(m)), None)
    return m


def line(r):
    """A line, and whether it surely has an answer."""
    kind = r.randrange(20)
    if kind == 0:
        return (
            bytes(r.randrange(256) for _ in range(r.randrange(1, 60))).replace(b"\n", b"").replace(b"\r", b"") + b"x",
            True,
        )
    if kind == 1:
        return b"[" * r.randrange(1, 600) + b"]" * r.randrange(600), True
    text = json.dumps([message(r) for _ in range(r.randrange(1, 4))] if kind == 2 else message(r)).encode()
    if kind == 3:  # cut, or with a byte that is another one
        at = r.randrange(len(text))
        return (
            (text[:at] or b"{") if r.random() < 0.5 else text[:at] + bytes([r.randrange(32, 256)]) + text[at + 1 :]
        ), False
    if kind == 4 and r.random() < 0.02:
        return b'{"a":"' + b"y" * 1100000, True
    m = json.loads(text)
    sure = (
        isinstance(m, dict)
        and isinstance(m.get("id"), (int, float, str))
        and not isinstance(m["id"], bool)
        and "method" in m
        and not isinstance(m["id"], bool)
    )
    return text, sure


def hostile(count, seed, *indexes):
    r = random.Random(seed)
    client = Client(*indexes, version="2025-03-26")
    lines = [line(r) for _ in range(count)]
    sent, sure = 0, sum(answered for _, answered in lines)
    writer = os.fork()
    if writer == 0:
        for text, _ in lines:
            client.p.stdin.write(text + b"\n")
        client.p.stdin.flush()
        os._exit(0)
    client.p.stdin.close()
    for answer in client.p.stdout:
        answer = json.loads(answer.decode("utf-8"))
        for one in answer if isinstance(answer, list) else [answer]:
            assert one["jsonrpc"] == "2.0", one
            if "method" in one:
                assert one["method"] == "notifications/progress" and "id" not in one, one
                continue
            assert ("result" in one) != ("error" in one) and "id" in one, one
            if "error" in one:
                assert one["error"]["code"] in (-32700, -32600, -32601, -32602) and one["error"]["message"], one
            sent += not isinstance(answer, list)
    os.waitpid(writer, 0)
    assert client.p.wait(600) == 0, client.p.returncode
    print(count, "lines,", sent, "answers")
    assert sent >= sure * 0.7, (sent, sure)  # those that were cancelled in time have none


async def peer(index):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = StdioServerParameters(command="gpuir", args=["mcp", index], env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        version = getattr(hello, "protocolVersion", None) or hello.protocol_version
        assert version == "2025-06-18", hello
        await session.send_ping()
        tools = await session.list_tools()
        assert [t.name for t in tools.tools] == ["search", "passages", "read"], tools
        result = await session.call_tool("passages", {"query": "how do wolves hunt", "k": 2})
        failed = getattr(result, "isError", None)
        failed = result.is_error if failed is None else failed
        assert not failed and "wolf" in result.content[0].text, result
        result = await session.call_tool("read", {"path": "/etc/passwd"})
        failed = getattr(result, "isError", None)
        assert result.is_error if failed is None else failed, result
    print("peer done")


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "tasks":
        tasks(*rest)
    elif what == "cancel":
        cancel(*rest)
    elif what == "hostile":
        hostile(int(rest[0]), int(rest[1]), *rest[2:])
    elif what == "peer":
        asyncio.run(peer(*rest))
    else:
        sys.exit(__doc__)
