"""Enrolment without shared secrets: three folders, files that are sent, what each side refuses."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import ports
import pytest
from cryptography import x509
from processes import Processes, wait_until
from terminal import read_rest, read_until

from gosta.errors import GostaError, InputError
from gosta.net import members
from gosta.net.config import read_node
from gosta.net.deploy import authority, bundles, certificates, enrolment, plan
from gosta.net.deploy.authority import Passphrase
from gosta.net.deploy.bundles import Bundle, Invitation, Request
from gosta.net.deploy.network import Network, links_of
from gosta.net.members import is_issued_by, read_keyring, read_list
from gosta.net.node.credentials import load_credentials
from gosta.net.transport.tls import load_certificate

SITES = ("site-a", "site-b", "site-c")
INIT = ("-s", "auc", "--score", "risk", "--label", "died", "--classes", "0,1", "--enrol")


def write_rows(path: Path, count: int) -> Path:
    path.write_text("risk,died\n" + "".join(f"{k * 7 % 10}.5,{k % 2}\n" for k in range(count)))
    return path


class Enrolment:
    """The folders of a coordinator and three sites, which share only files that are sent."""

    def __init__(self, root: Path, gosta_: Any) -> None:
        self.root, self.gosta, self.port = root, gosta_, ports.free()
        self.net = root / "coordinator" / "net"
        self.net.parent.mkdir()

    def run(self, *arguments: object) -> str:
        code, out, err = self.gosta(*arguments)
        assert (code, err) == (0, "")
        return str(out)

    def fail(self, *arguments: object) -> str:
        code, _, err = self.gosta(*arguments)
        assert code == 2
        assert err.count("\n") == 1
        return str(err)

    def invite(self, *arguments: object) -> str:
        return self.run("network", "init", self.net, *INIT, *arguments)

    def request(self, name: str, *arguments: object) -> str:
        place = f"127.0.0.1:{self.port + SITES.index(name)}"
        data = write_rows(self.root / f"{name}.csv", 20 + SITES.index(name))
        received = shutil.copy(self.net / "invitation.json", self.root / f"{name}-invitation.json")
        return self.run(
            "node",
            "request",
            received,
            self.root / name,
            "--name",
            name,
            "--listen",
            place,
            "--data",
            data,
            *arguments,
        )

    def sign(self, *names: str, extra: tuple[object, ...] = ()) -> str:
        return self.run(
            "network",
            "sign",
            self.net,
            *(self.root / n / "request.json" for n in names),
            "--yes",
            *extra,
        )

    def join(self, *names: str) -> str:
        return "".join(
            self.run(
                "node", "join", self.net / "bundles" / f"{name}.json", self.root / name, "--yes"
            )
            for name in names
        )

    def whole(self) -> None:
        self.invite()
        for name in SITES:
            self.request(name)
        self.sign(*SITES)
        self.join(*SITES)


@pytest.fixture
def enrol(tmp_path: Path, gosta_: Any) -> Enrolment:
    return Enrolment(tmp_path, gosta_)


def log(event: str, **fields: Any) -> None:
    raise AssertionError((event, fields))


def check_site(folder: Path) -> members.MemberList:
    site = read_node(folder / "node.toml")
    return load_credentials(folder, site, log)[1].list


def test_three_sites_enrol(enrol: Enrolment) -> None:
    out = enrol.invite()
    invitation = re.findall(r"(?:[0-9a-f]{4} ){7}[0-9a-f]{4}", out)
    spoken = []
    for name in SITES:
        out = enrol.request(name)
        shown = re.findall(r"(?:[0-9a-f]{4} ){7}[0-9a-f]{4}", out)
        assert shown[:1] == invitation
        spoken.append(shown[1])
    out = enrol.sign(*SITES)
    *requested, fingerprint = re.findall(r"(?:[0-9a-f]{4} ){7}[0-9a-f]{4}", out)
    assert requested == spoken
    assert "member list 1, 3 members" in out
    assert f"fingerprint of list 1: {fingerprint}; read it out to each site" in out
    out = enrol.join("site-a")
    assert (
        f"fingerprint of the list: {fingerprint}; compare it with the coordinator's, on the phone"
        in out
    )
    assert "policy.toml allows modes rows" in out
    assert fingerprint in enrol.join("site-a"), "also of a list that was accepted already"
    assert "samples of at most 8 rows" in out
    assert re.search(r"site-b\s+21\s", out)
    enrol.join("site-b", "site-c")
    for name in SITES:
        listed = check_site(enrol.root / name)
        assert [(one.name, one.rows) for one in listed.members] == [
            ("site-a", 20),
            ("site-b", 21),
            ("site-c", 22),
        ]
        neighbours = read_node(enrol.root / name / "node.toml").neighbours
        assert neighbours == {
            n: p for n, p in Network.read(enrol.net).config.nodes.items() if n != name
        }


def test_no_secret_leaves_its_folder(enrol: Enrolment) -> None:
    enrol.whole()
    for name in SITES:
        folder = enrol.root / name
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
        secret = b"".join((folder / "key.pem").read_bytes().splitlines()[1:-1])
        others = [
            path for path in enrol.root.rglob("*") if path.is_file() and folder not in path.parents
        ]
        assert not [path for path in others if secret in path.read_bytes()]
    sent = [
        *enrol.net.glob("*.json"),
        *(enrol.net / "bundles").iterdir(),
        *enrol.root.glob("site-*/request.*"),
    ]
    assert len(sent) == 2 + 3 + 6
    assert not [path for path in sent if b"PRIVATE" in path.read_bytes()]
    assert not [
        path
        for path in enrol.net.rglob("*")
        if "key" in path.name and path.parent.name != "authority"
    ]


def test_a_new_site_and_a_new_list(enrol: Enrolment) -> None:
    enrol.invite()
    for name in SITES:
        enrol.request(name)
    enrol.sign("site-a", "site-b")
    enrol.join("site-a", "site-b")
    assert "new site" in enrol.sign("site-c")
    out = enrol.join("site-c", "site-a")
    assert "changes:\n  new member: site-c\n" in out
    assert check_site(enrol.root / "site-a").serial == 2
    members.write_list(
        enrol.root / "site-b" / "proposed.json", read_list(enrol.net / "members.json")
    )
    out = enrol.run("node", "accept", enrol.root / "site-b", "--yes")
    assert "new member: site-c" in out
    assert (
        "fingerprint of the list: "
        f"{members.list_fingerprint(read_list(enrol.net / 'members.json').list)};" in out
    )
    assert check_site(enrol.root / "site-b").serial == 2
    assert not (enrol.root / "site-b" / "proposed.json").exists()
    assert "no list that was not accepted yet" in enrol.run("node", "accept", enrol.root / "site-b")
    assert read_node(enrol.root / "site-b" / "node.toml").neighbours.keys() == {"site-a"}, (
        "only a bundle has addresses"
    )
    enrol.join("site-b")
    assert read_node(enrol.root / "site-b" / "node.toml").neighbours.keys() == {"site-a", "site-c"}


def test_without_acceptance_nothing_changes(enrol: Enrolment) -> None:
    enrol.invite()
    for name in SITES:
        enrol.request(name)
    err = enrol.fail("network", "sign", enrol.net, enrol.root / "site-a" / "request.json")
    assert "not confirmed: Did each site read out the same fingerprint?" in err
    assert Network.read(enrol.net).config.nodes == {}
    enrol.sign(*SITES)
    before = {path: path.read_bytes() for path in (enrol.root / "site-a").iterdir()}
    assert "not confirmed" in enrol.fail(
        "node", "join", enrol.net / "bundles" / "site-a.json", enrol.root / "site-a"
    )
    assert {path: path.read_bytes() for path in (enrol.root / "site-a").iterdir()} == before


def test_a_list_that_was_not_accepted_is_not_used(enrol: Enrolment) -> None:
    enrol.whole()
    folder = enrol.root / "site-a"
    enrol.run("network", "remove", enrol.net, "site-c")
    members.write_list(folder / "members.json", read_list(enrol.net / "members.json"))
    with pytest.raises(
        GostaError, match="was not accepted yet; see it and do so: gosta node accept"
    ):
        check_site(folder)
    assert "no longer a member: site-c" in enrol.run("node", "accept", folder, "--yes")
    assert check_site(folder).keys.keys() == {"site-a", "site-b"}


def test_a_removed_site_is_revoked(enrol: Enrolment) -> None:
    enrol.whole()
    key = check_site(enrol.root / "site-c").keys["site-c"].hex()
    out = enrol.run("network", "remove", enrol.net, "site-c")
    assert "send each site its bundle" in out
    assert "node.toml" not in out
    assert not list(enrol.net.rglob("site-c*"))
    enrol.join("site-a", "site-b")
    assert check_site(enrol.root / "site-a").revoked == (key,)
    err = enrol.fail("network", "sign", enrol.net, enrol.root / "site-c" / "request.json", "--yes")
    assert "the key of member site-c is revoked" in err


def test_a_new_key_of_a_site(enrol: Enrolment) -> None:
    enrol.whole()
    folder, old = enrol.root / "site-a", check_site(enrol.root / "site-a")
    enrol.run("node", "request", enrol.net / "invitation.json", folder, "--new-key")
    assert check_site(folder) == old, "the old key is used until the new one is certified"
    assert "new key" in enrol.sign("site-a")
    out = enrol.join(*SITES)
    assert "new key of site-a" in out
    new = check_site(folder)
    assert new.keys["site-a"] != old.keys["site-a"]
    assert new.revoked == (old.keys["site-a"].hex(),)
    assert not (folder / "next-key.pem").exists()


def test_a_site_has_a_policy_of_its_own(enrol: Enrolment) -> None:
    """A request makes one, and joining makes one that is missing; none is replaced.

    Accepting a list makes none.
    """
    enrol.whole()
    policy = enrol.root / "site-a" / "policy.toml"
    assert '\nmodes = ["rows"] ' in policy.read_text()
    policy.unlink()
    enrol.run("network", "remove", enrol.net, "site-c")
    members.write_list(
        enrol.root / "site-a" / "proposed.json", read_list(enrol.net / "members.json")
    )
    enrol.run("node", "accept", enrol.root / "site-a", "--yes")
    assert not policy.exists(), "whoever deletes it wants nothing to leave the site"
    assert "policy.toml (written now) allows modes rows" in enrol.join("site-a")
    policy.write_text('modes = ["rows"]\nmin_rows = 7\n')
    assert "policy.toml allows modes rows" in enrol.join("site-a")
    assert policy.read_text().endswith("min_rows = 7\n")
    policy.write_text("min_row = 7\n")
    out = enrol.join("site-a")
    assert "nothing leaves this site: " in out
    assert "unknown field `min_row`" in out


def test_sites_of_private_sums_see_bounds_and_budgets(enrol: Enrolment) -> None:
    out = enrol.invite("--private", "--range", "risk=0:10", "--epsilon", 1)
    assert "each site stops at epsilon 10, about 10 releases; policy.toml" in out
    out = enrol.request("site-a")
    assert "declares at most 50 rows, which is public" in out
    assert "each site stops at epsilon 10, about 10 releases; policy.toml" in out
    enrol.request("site-b")
    out = enrol.sign("site-a", "site-b")
    assert re.search(r"site-b +new site +\S+ +at most 50 rows +[0-9a-f]{4} ", out)
    out = enrol.join("site-a")
    assert re.search(r"site-a +at most 50 rows +[0-9a-f]{4} ", out)
    assert "policy.toml allows modes noisy; this site stops at epsilon 10" in out
    write_rows(enrol.root / "site-b.csv", 51)
    enrol.join("site-b")
    _, out, _ = enrol.gosta("check", enrol.root / "site-b")
    assert (
        "declared rows: more than the list allows, 50\n"
        "         51 rows\n         ask the coordinator" in out
    )
    enrol.run("node", "request", enrol.net / "invitation.json", enrol.root / "site-b")
    enrol.sign("site-b")
    assert "site-b declares at most 100 rows, before at most 50 rows" in enrol.join(
        "site-a", "site-b"
    )
    assert (
        "declared rows: declares at most 100 rows" in enrol.gosta("check", enrol.root / "site-b")[1]
    )


def test_new_certificates_for_the_same_keys(enrol: Enrolment) -> None:
    enrol.whole()
    folder = enrol.root / "site-a"
    cert, listed = (folder / "cert.pem").read_bytes(), check_site(folder)
    assert "member list 1" in enrol.run("network", "sign", enrol.net)
    out = enrol.run(
        "node", "join", enrol.net / "bundles" / "site-a.json", folder
    )  # nothing to accept
    assert "accepted already" in out
    assert (folder / "cert.pem").read_bytes() != cert
    assert check_site(folder) == listed


def test_a_new_address_and_more_rows(enrol: Enrolment) -> None:
    enrol.whole()
    write_rows(enrol.root / "site-a.csv", 50)
    enrol.run(
        "node",
        "request",
        enrol.net / "invitation.json",
        enrol.root / "site-a",
        "--address",
        "a.example:7400",
    )
    assert "new address" in enrol.sign("site-a")
    out = enrol.join("site-b")
    assert "site-a declares 50 rows, before 20 rows" in out
    assert read_node(enrol.root / "site-b" / "node.toml").neighbours["site-a"] == "a.example:7400"


def test_the_authority_is_replaced_in_three_steps(enrol: Enrolment) -> None:
    enrol.whole()
    for step, count in ((1, 2), (2, 2), (3, 1)):
        out = enrol.run("network", "rotate-authority", enrol.net)
        assert f"step {step} of 3" in out
        assert ("next, once every node has reloaded this" in out) == (step < 3)
        enrol.join(*SITES)
        for name in SITES:
            folder = enrol.root / name
            check_site(folder)
            assert len(x509.load_pem_x509_certificates((folder / "ca.pem").read_bytes())) == count
    signer = load_certificate((enrol.net / "authority" / "cert.pem").read_bytes())
    for name in SITES:
        assert is_issued_by(load_certificate((enrol.root / name / "cert.pem").read_bytes()), signer)
    assert not (enrol.net / "authority" / "next").exists()


def test_a_site_that_missed_a_step_does_not_trust_the_new_authority(enrol: Enrolment) -> None:
    enrol.whole()
    for _ in range(2):
        enrol.run("network", "rotate-authority", enrol.net)
    err = enrol.fail(
        "node", "join", enrol.net / "bundles" / "site-a.json", enrol.root / "site-a", "--yes"
    )
    assert "another authority than that in ca.pem" in err


def test_an_authority_elsewhere(enrol: Enrolment) -> None:
    own = enrol.root / "hospital"
    own.mkdir()
    signer = certificates.make_authority("hospital")
    (own / "cert.pem").write_bytes(signer.cert)
    enrol.invite("--authority", own)
    enrol.request("site-a")
    request = enrol.root / "site-a" / "request.json"
    err = enrol.fail("network", "sign", enrol.net, request, "--yes")
    assert "have it sign" in err
    csr = enrol.net / "requests" / "site-a.csr"
    assert str(csr) in err
    assert csr.read_bytes() == (enrol.root / "site-a" / "request.csr").read_bytes()
    network = Network.read(enrol.net).task.id
    made = []
    for name, path in (
        ("coordinator", enrol.net / "authority" / "coordinator-request.pem"),
        ("site-a", csr),
    ):
        key = certificates.check_request(path.read_bytes(), network, name)
        made.append(enrol.root / f"{name}.pem")
        made[-1].write_bytes(certificates.certify(signer, network, name, key))
    err = enrol.fail("network", "sign", enrol.net, request, "--yes", "--certificate", made[1])
    assert "the coordinator has no certificate yet" in err
    enrol.sign("site-a", extra=("--certificate", made[0], "--certificate", made[1]))
    enrol.join("site-a")
    check_site(enrol.root / "site-a")
    assert not list(enrol.net.rglob("key.pem"))
    other = enrol.root / "other.pem"
    other.write_bytes(certificates.issue(signer, network, "site-a").cert)
    err = enrol.fail("network", "sign", enrol.net, request, "--yes", "--certificate", other)
    assert "a key that no request" in err


def test_an_encrypted_authority(enrol: Enrolment, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = enrol.root / "passphrase"
    secret.write_text("correct horse battery\n")
    enrol.invite("--passphrase-file", secret)
    keys = sorted((enrol.net / "authority").glob("*key.pem"))
    assert [b"ENCRYPTED" in key.read_bytes() for key in keys] == [True, True]
    enrol.request("site-a")
    request = enrol.root / "site-a" / "request.json"
    assert "needs its passphrase" in enrol.fail("network", "sign", enrol.net, request, "--yes")
    monkeypatch.setenv("GOSTA_PASSPHRASE", "wrong horse battery")
    assert "the passphrase is wrong" in enrol.fail("network", "sign", enrol.net, request, "--yes")
    monkeypatch.setenv("GOSTA_PASSPHRASE", "correct horse battery")
    enrol.sign("site-a")
    enrol.join("site-a")
    check_site(enrol.root / "site-a")
    assert "step 1 of 3" in enrol.run("network", "rotate-authority", enrol.net)
    keys = sorted((enrol.net / "authority").rglob("*key.pem"))
    assert [b"ENCRYPTED" in key.read_bytes() for key in keys] == [True] * 3
    second = (
        "network",
        "init",
        enrol.root / "second",
        *INIT,
        "--authority",
        enrol.net / "authority",
    )
    assert enrol.gosta(*second)[0] == 0
    assert b"ENCRYPTED" in (enrol.root / "second" / "authority" / "key.pem").read_bytes()


def test_a_passphrase_from_the_terminal(tmp_path: Path) -> None:
    process, terminal = pty.fork()
    if process == 0:
        where = [str(tmp_path / "net"), *INIT, "--passphrase"]
        os.execv(sys.executable, [sys.executable, "-m", "gosta", "network", "init", *where])
    for prompt in (b"passphrase of the authority's key: ", b"the same again: "):
        read_until(terminal, prompt)
        os.write(terminal, b"correct horse\n")
    out = read_rest(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, out
    key = (tmp_path / "net" / "authority" / "key.pem").read_bytes()
    assert certificates.load_key(key, b"correct horse")


def test_passphrases_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "short").write_text("short\n")
    with pytest.raises(InputError, match="at least 8 characters"):
        Passphrase(tmp_path / "short").read()
    with pytest.raises(InputError, match="cannot be read: No such file"):
        Passphrase(tmp_path / "none").read()


def test_bundles_that_a_site_refuses(enrol: Enrolment, tmp_path: Path) -> None:
    enrol.whole()
    folder, path = enrol.root / "site-a", tmp_path / "bundle.json"
    mine, theirs = (
        bundles.read(enrol.net / "bundles" / f"{name}.json", Bundle) for name in SITES[:2]
    )
    network = mine.members.list.network
    signer = authority.read(enrol.net, network).signer
    now, key = datetime.now(UTC), mine.members.list.keys["site-a"]
    dates = {"not_before": now - timedelta(days=2), "not_after": now - timedelta(days=1)}
    stranger = certificates.make_authority(network)
    listed = mine.members.list
    wrong: dict[str, Bundle] = {
        "is for site-b; this site is site-a": theirs,
        "not for site-a": Bundle("site-a", theirs.certificate, mine.neighbours, mine.members),
        "valid from": Bundle(
            "site-a",
            certificates.certify(signer, network, "site-a", key, **dates).decode(),
            mine.neighbours,
            mine.members,
        ),
        "not issued by this network's authority": Bundle(
            "site-a",
            certificates.certify(stranger, network, "site-a", key).decode(),
            mine.neighbours,
            mine.members,
        ),
        "for another key than this site's": Bundle(
            "site-a",
            certificates.issue(signer, network, "site-a").cert.decode(),
            mine.neighbours,
            mine.members,
        ),
        "is not another member": Bundle(
            "site-a", mine.certificate, {"site-d": "127.0.0.1:1"}, mine.members
        ),
        "must be host:port": Bundle(
            "site-a", mine.certificate, {"site-b": "nowhere"}, mine.members
        ),
        "changed after the coordinator signed it": Bundle(
            "site-a",
            mine.certificate,
            {},
            members.SignedList(
                members.MemberList(network, 2, listed.statistic, {}, listed.members[:2]),
                mine.members.certificate,
                mine.members.signature,
            ),
        ),
    }
    before = {one: one.read_bytes() for one in folder.iterdir()}
    for text, bundle in wrong.items():
        bundles.write(path, bundle)
        assert text in enrol.fail("node", "join", path, folder, "--yes")
    for content in (b"", b"{}", b"[" * 10**5, b"\xff"):
        path.write_bytes(content)
        assert "does not hold a bundle" in enrol.fail("node", "join", path, folder, "--yes")
    path.write_bytes(bytes(bundles.MAX_BUNDLE_BYTES + 1))
    assert "the limit for a bundle" in enrol.fail("node", "join", path, folder, "--yes")
    assert {one: one.read_bytes() for one in folder.iterdir()} == before


def test_an_older_list_is_refused(enrol: Enrolment, tmp_path: Path) -> None:
    enrol.whole()
    shutil.copy(enrol.net / "bundles" / "site-a.json", old := tmp_path / "old.json")
    enrol.run("network", "remove", enrol.net, "site-c")
    enrol.join("site-a")
    assert "list 1 is not newer than list 2" in enrol.fail(
        "node", "join", old, enrol.root / "site-a", "--yes"
    )


def test_requests_that_a_coordinator_refuses(enrol: Enrolment, tmp_path: Path) -> None:
    enrol.invite()
    enrol.request("site-a")
    good = bundles.read(enrol.root / "site-a" / "request.json", Request)
    path, values = (
        tmp_path / "request.json",
        json.loads((enrol.root / "site-a" / "request.json").read_text()),
    )
    for text, change in {
        "is for network": {"network": "f" * 16},
        "is not for site-b": {"name": "site-b"},
        "a node's name has": {"name": "../site"},
        "is that of the coordinator": {"name": "coordinator"},
        "must be host:port": {"address": "nowhere"},
        "cannot be read; the site has to make it again": {"request": "nothing"},
        "does not hold a request": {"rows": -1},
    }.items():
        path.write_text(json.dumps(values | change))
        assert text in enrol.fail("network", "sign", enrol.net, path, "--yes")
    err = enrol.fail(
        "network", "sign", enrol.net, *[enrol.root / "site-a" / "request.json"] * 2, "--yes"
    )
    assert "two requests for site-a" in err
    assert "has no member yet" in enrol.fail("network", "sign", enrol.net)
    assert Network.read(enrol.net).config.nodes == {}
    assert good.rows == 20


def test_invitations_that_a_site_refuses(enrol: Enrolment, tmp_path: Path) -> None:
    enrol.invite()
    good, path = (
        bundles.read(enrol.net / "invitation.json", Invitation),
        tmp_path / "invitation.json",
    )
    request = (
        "node",
        "request",
        path,
        enrol.root / "site-a",
        "--name",
        "site-a",
        "--listen",
        "127.0.0.1:7400",
    )
    for text, wrong in {
        "plain name": Invitation(good.network, {"../x": b""}, good.authority),
        "would replace one of the node's own": Invitation(
            good.network, {"key.pem": b""}, good.authority
        ),
        "a certificate in PEM": Invitation(good.network, {}, "nothing"),
    }.items():
        bundles.write(path, wrong)
        assert text in enrol.fail(*request)
    shutil.copy(enrol.net / "invitation.json", path)
    assert "needs --name" in enrol.fail(*request[:4])
    assert "port from 1" in enrol.fail(*request[:-1], "127.0.0.1:0")
    assert "no such file" in enrol.fail(*request, "--data", tmp_path / "none.csv")
    assert not (enrol.root / "site-a").exists()


def test_code_of_an_invitation_is_shown_before_it_is_run(enrol: Enrolment, tmp_path: Path) -> None:
    code = tmp_path / "mine.py"
    code.write_text(
        "import gosta, pathlib\n"
        f"pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n"
        "@gosta.statistic(name='gap')\ndef gap(x, y): return abs(x[0] - y[0])\n"
    )
    enrol.run("network", "init", enrol.net, "-s", f"{code}:gap", "--enrol")
    (tmp_path / "ran").unlink()
    (tmp_path / "rows.csv").write_text("a\n1\n2\n")
    request = (
        "node",
        "request",
        enrol.net / "invitation.json",
        enrol.root / "site-a",
        "--name",
        "site-a",
    )
    options = ("--listen", "127.0.0.1:7400", "--data", tmp_path / "rows.csv")
    returned = enrol.gosta(*request, *options)
    assert returned[0] == 2
    assert "def gap(x, y)" in returned[1]
    assert "Python code, which this site will run" in returned[2]
    assert not (tmp_path / "ran").exists()
    enrol.run(*request, *options, "--yes")
    assert (tmp_path / "ran").exists()
    assert (enrol.root / "site-a" / "mine.py").read_bytes() == code.read_bytes()


def test_a_node_notices_wrong_credentials(enrol: Enrolment) -> None:
    enrol.whole()
    folder, other = enrol.root / "site-a", enrol.root / "site-b"
    cert = (folder / "cert.pem").read_bytes()
    shutil.copy(other / "cert.pem", folder / "cert.pem")
    with pytest.raises(GostaError, match=r"is for site-b\.\w+, and this node is site-a\."):
        check_site(folder)
    (folder / "cert.pem").write_bytes(cert)
    key = (folder / "key.pem").read_bytes()
    (folder / "key.pem").write_bytes((other / "key.pem").read_bytes())
    with pytest.raises(GostaError, match="is not the key of site-a"):
        check_site(folder)
    (folder / "key.pem").write_bytes(key)
    (folder / "key.pem").chmod(0o644)
    with pytest.raises(GostaError, match="chmod 600"):
        check_site(folder)


def test_later_sites_get_the_neighbours_with_the_fewest(tmp_path: Path) -> None:
    made = plan.for_sites(plan.Goal("variance"), "complete", None, 0)
    enrolment.invite(tmp_path / "net", made)
    invitation = bundles.read(tmp_path / "net" / "invitation.json", Invitation)
    for k in range(12):
        name = f"node-{k}"
        enrolment.request(invitation, tmp_path / name, name, f"127.0.0.1:{7400 + 2 * k}")
    requests = [bundles.read(tmp_path / f"node-{k}" / "request.json", Request) for k in range(12)]
    enrolment.sign(tmp_path / "net", requests[:8])
    enrolment.sign(tmp_path / "net", requests[8:])
    network = Network.read(tmp_path / "net").config
    degrees = [len(links_of(network, name).neighbours) for name in network.nodes]
    assert min(degrees) >= 2
    assert Network.read(tmp_path / "net").add(port=ports.free()).name == "node-12"
    assert (
        len(read_keyring(tmp_path / "net" / "node-12", "node-12", network.network.id).members) == 13
    )


def test_a_network_on_one_machine_has_accepted_lists(enrol: Enrolment) -> None:
    net = enrol.root / "one"
    enrol.run("network", "init", net, "--data", "breast-cancer", "--nodes", 4, "--port", enrol.port)
    rows = {one.name: one.rows for one in check_site(net / "node-0").members}
    assert sum(rows.values()) == 569
    enrol.run("network", "certify", net, "node-1")
    listed = check_site(net / "node-1")
    assert (listed.serial, len(listed.revoked)) == (2, 1)
    enrol.run("network", "remove", net, "node-2")
    enrol.run("network", "add", net)
    for step in (1, 2, 3):
        assert f"step {step} of 3" in enrol.run("network", "rotate-authority", net)
        for name in ("node-0", "node-1", "node-3", "node-4"):
            listed = check_site(net / name)
    assert (listed.serial, set(listed.keys)) == (7, {"node-0", "node-1", "node-3", "node-4"})
    assert len(listed.revoked) == 2


def test_a_network_of_an_earlier_version_gets_keys_and_a_list(enrol: Enrolment) -> None:
    net = enrol.root / "one"
    enrol.run("network", "init", net, "--data", "breast-cancer", "--nodes", 3, "--port", enrol.port)
    for path in (
        *net.rglob("*.json"),
        *net.glob("authority/coordinator*"),
        net / "authority" / "trusted.pem",
    ):
        path.unlink()
    assert "make new keys with: gosta network certify" in enrol.fail(
        "network", "remove", net, "node-1"
    )
    enrol.run("network", "certify", net)
    assert sum(one.rows for one in check_site(net / "node-2").members) == 569
    enrol.run("network", "remove", net, "node-1")
    assert check_site(net / "node-2").serial == 2


def test_three_sites_exchange_and_replace_everything_while_they_run(enrol: Enrolment) -> None:
    """The commands of docs/how-to/enrolment.md: three processes; new certificates and keys."""
    enrol.whole()
    with Processes(*(enrol.root / name for name in SITES)) as running:

        def wait_for_exchanges() -> None:
            """Wait until every site has exchanged more, and knows of all rows."""
            running.wait_for_exchanges(20)
            running.wait(lambda found: all(one.rows_seen == 63 for one in found))

        def wait_for_log(text: str, count: int) -> None:
            wait_until(lambda: all(running.log(name).count(text) >= count for name in SITES))

        running.start(*SITES)
        wait_for_exchanges()
        enrol.sign()
        enrol.join(*SITES)
        wait_for_log("credentials reloaded", 1)
        for step in range(3):
            enrol.run("network", "rotate-authority", enrol.net)
            enrol.join(*SITES)
            wait_for_log("credentials reloaded", 2 + step)
        wait_for_exchanges()
        enrol.run(
            "node", "request", enrol.net / "invitation.json", enrol.root / "site-a", "--new-key"
        )
        enrol.sign("site-a")
        enrol.join(*SITES)
        wait_for_log("credentials reloaded", 5)
        wait_for_exchanges()
        running.stop()
        assert "reload failed" not in "".join(map(running.log, SITES))
    for name in SITES:  # what sites send to have their journals checked, without their keys
        shutil.copytree(
            enrol.root / name, enrol.net / name, ignore=shutil.ignore_patterns("key.pem")
        )
    enrol.run("network", "verify", enrol.net)
