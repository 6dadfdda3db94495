#!/usr/bin/env python3
"""A receiver of Netstead's IPAM webhook that keeps objects in a JSON file. See docs/reference/ipam-webhook.md."""
import argparse, hashlib, hmac, json, os, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

parser = argparse.ArgumentParser()
parser.add_argument("--listen", default="127.0.0.1:8099")
parser.add_argument("--secret-file", required=True)
parser.add_argument("--file", default="objects.json")
args = parser.parse_args()
SECRET = open(args.secret_file, "rb").read().strip()
LOCK, ANSWERED, PAGE = Lock(), {}, 100
STATE = {}


def load():
    """Reads the file for each request, so that an object can be changed by hand too."""
    STATE.clear()
    if os.path.exists(args.file):
        with open(args.file) as file:
            STATE.update(json.load(file))
    else:
        STATE.update({"next": 1, "objects": {}})


def save():
    with open(args.file + ".new", "w") as file:
        json.dump(STATE, file, indent=1)
    os.replace(args.file + ".new", args.file)


def marked(owner, key):
    mark = {"owner": owner, "key": key}
    return next((one for one in STATE["objects"].values() if one["mark"] == mark), None)


def refers(fields, key):
    # A field that is filled later, such as primary_ip4, does not hold its target.
    held = {name: value for name, value in fields.items() if not name.startswith("primary_")}
    return any(isinstance(value, dict) and value.get("ref") == key for value in held.values())


def apply(owner, unit):
    """Applies a unit wholly or not at all."""
    key, before, after = unit["key"], unit["before"], unit["after"]
    for value in after.values():
        if isinstance(value, dict) and not marked(owner, value["ref"]):
            return {"outcome": "rejected", "reason": f"there is no {value['ref']}"}
    if unit["action"] == "create":
        there = marked(owner, key)
        if there:
            return {"outcome": "applied" if there["fields"] == after else "changed"}
        address = after.get("address", "").split("/")[0]
        for other in STATE["objects"].values():
            if address and other["kind"] == unit["kind"] and other["fields"].get("address", "").split("/")[0] == address:
                return {"outcome": "rejected", "reason": "the address is there already"}
        number, STATE["next"] = str(STATE["next"]), STATE["next"] + 1
        mark = {"owner": owner, "key": key}
        STATE["objects"][number] = {"kind": unit["kind"], "id": number, "mark": mark, "fields": after}
        return {"outcome": "applied"}
    there = STATE["objects"].get(unit["id"])
    if unit["action"] == "delete" and not there:
        return {"outcome": "applied"}
    ours = there and there["mark"] == {"owner": owner, "key": key}
    if not ours and not (there and unit.get("adopt") and there["mark"] is None):
        return {"outcome": "changed"}
    if unit["action"] == "delete":
        if any(refers(other["fields"], key) for other in STATE["objects"].values()):
            return {"outcome": "rejected", "reason": "something still hangs on it"}
        del STATE["objects"][unit["id"]]
        return {"outcome": "applied"}
    names, fields = before.keys() | after.keys(), there["fields"]
    if any(fields.get(name) != after.get(name) for name in names):
        if any(fields.get(name) != before.get(name) for name in names):
            return {"outcome": "changed"}
    there["mark"] = {"owner": owner, "key": key}
    there["fields"] = {name: value for name, value in fields.items() if name not in before} | after
    return {"outcome": "applied"}


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def trusted(self, body):
        stamp, key = self.headers.get("Netstead-Timestamp", ""), self.headers.get("Idempotency-Key", "")
        if not stamp.isdigit() or abs(time.time() - int(stamp)) > 300:
            return False
        head = f"netstead-webhook-1\n{self.command}\n{self.path}\n{stamp}\n{key}\n".encode()
        wanted = "sha256=" + hmac.new(SECRET, head + body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(wanted, self.headers.get("Netstead-Signature", ""))

    def do_GET(self):
        if not self.trusted(b""):
            return self.reply(401, {"error": "the signature is wrong"})
        after = "0" if self.path == "/v1/objects" else self.path.removeprefix("/v1/objects/after/")
        if not after.isdigit():
            return self.reply(404, {"error": "no such path"})
        with LOCK:
            load()
            rest = [one for number, one in STATE["objects"].items() if int(number) > int(after)]
            more = rest[PAGE - 1]["id"] if len(rest) > PAGE else None
            self.reply(200, {"objects": rest[:PAGE], "next": more})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if not self.trusted(body):
            return self.reply(401, {"error": "the signature is wrong"})
        if self.path != "/v1/changes":
            return self.reply(404, {"error": "no such path"})
        key, request = self.headers["Idempotency-Key"], json.loads(body)
        with LOCK:
            if key not in ANSWERED:
                load()
                outcomes = [apply(request["owner"], unit) for unit in request["units"]]
                save()
                ANSWERED[key] = {"outcomes": outcomes}
            self.reply(200, ANSWERED[key])

    def log_message(self, *_):
        pass


host, port = args.listen.rsplit(":", 1)
server = ThreadingHTTPServer((host, int(port)), Receiver)
print(f"listening on {host}:{server.server_port}", flush=True)
server.serve_forever()
