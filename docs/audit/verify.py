"""Verifies an export without Vatproof: python3 verify.py FOLDER PUBLIC_KEY [RECEIPT_ID ...]. Needs openssl. Exits with 1 if anything is wrong."""
import base64, hashlib, json, pathlib, subprocess, sys, tempfile
(folder, key, *receipts), sha = sys.argv[1:], lambda data: hashlib.sha256(data).digest()
def read(*path): return pathlib.Path(folder, *path).read_bytes().decode()
def lines(*path):
    with open(pathlib.Path(folder, *path), encoding="utf-8", newline="\n") as file:
        for line in file: yield check(line.endswith("\n"), f"end of {path[-1]}") and line[:-1]
def canonical(value): return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
def check(holds, finding): return holds or sys.exit(f"WRONG: {finding}")
def split(size): return 1 << (size - 1).bit_length() - 1  # The largest power of two below the size.
def event_and_leaf(line):
    check(canonical(event := json.loads(line)) == line.encode(), f"not canonical JSON: {line}")
    digests = {f"{part}_sha256": sha(canonical(event[part])).hex() for part in ("data", "metadata")}
    return event, sha(b"\0" + canonical({name: event[name] for name in event.keys() - {"data", "metadata"}} | digests))
def signed(note):  # The size and the root of a checkpoint that the key signed.
    (name, key_id, public), (text, lines) = key.split("+", 2), note.split("\n\n")
    blobs = (base64.b64decode(line.split(" ")[2]) for line in lines.splitlines() if line.startswith(f"— {name} "))
    files = {"text": f"{text}\n".encode(), "signature": b"".join(blob[4:] for blob in blobs if blob[:4].hex() == key_id)}
    files["key"] = bytes.fromhex("302a300506032b6570032100") + base64.b64decode(public)[1:]  # The DER form of RFC 8410.
    with tempfile.TemporaryDirectory() as cwd:
        for file, data in files.items(): pathlib.Path(cwd, file).write_bytes(data)
        verify = "openssl pkeyutl -verify -pubin -keyform DER -rawin -inkey key -in text -sigfile signature".split()
        check(not subprocess.run(verify, cwd=cwd, capture_output=True).returncode and text.startswith(f"{name}\n"), "signature")
    return int(text.split("\n")[1]), base64.b64decode(text.split("\n")[2])
def tree(low, high):
    if high - low & high - low - 1 == 0 and (high <= first or low >= end): return next(left_out)
    return leaves[low - first] if high - low == 1 else sha(b"\1" + tree(low, low + split(high - low)) + tree(low + split(high - low), high))
def climb(at, size, leaf, path):
    if size == 1: return check(not path, "length of a proof") and leaf
    if at < split(size): return sha(b"\1" + climb(at, split(size), leaf, path[:-1]) + path[-1])
    return sha(b"\1" + path[-1] + climb(at - split(size), size - split(size), leaf, path[:-1]))
first, end, size, before, after = map(json.loads(read("manifest.json")).get, ("from", "to", "size", "before", "after"))
leaves, digests, count, left_out, leaf_lines = [], {}, 0, map(base64.b64decode, before + after), lines("leaves.txt")
for at, line in enumerate(lines("events.ndjson"), first):  # One line at a time: the memory has only leaves and digests.
    event, leaf = event_and_leaf(line)
    check(next(leaf_lines, None) == f"{at} {leaf.hex()}", "leaves.txt")
    leaves.append(leaf)
    if digest := event["data"].get("personal_sha256"): digests[event["position"]] = bytes.fromhex(digest)
check(next(leaf_lines, None) is None and len(leaves) == end - first, "leaves.txt")
check(signed(read("checkpoint")) == (size, tree(0, size)) and not list(left_out), "root")
for line in lines("personal", "documents.txt") if pathlib.Path(folder, "personal").exists() else []:
    (at, text), count = line.split(" ", 1), count + 1
    check(text == "erased" or sha(text.encode()) == digests.get(int(at)), f"document of {at}")
for receipt in receipts:
    (event, leaf), text = event_and_leaf(read("receipts", f"{receipt}.json").rstrip("\n")), read("proofs", f"{receipt}.tlog-proof")
    (size, root), path = signed(text.split("\n\n", 1)[1]), [base64.b64decode(line) for line in text.split("\n\n")[0].split("\n")[1:] if " " not in line]
    check(climb(event["position"], size, leaf, path) == root and event["data"]["receipt"]["receipt_id"] == receipt, f"proof of {receipt}")
print(f"Right: {len(leaves)} leaves, root, signature, {count} personal documents and the proofs of {len(receipts)} receipts")
