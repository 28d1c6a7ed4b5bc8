"""Pods of every sort that a node runs, each of whose containers says in a file of the node when it has begun.

`starts`: the directory on the node; a pod's file in it has a line a start, the container's name.
"""
import json

IMAGE = "localhost/busybox:1"
FOREVER = "trap 'exit 0' TERM; sleep 100000 & wait"
KINDS = ("once", "again", "server", "helped")


def container(pod, name, script, **more):
    return {"name": name, "image": IMAGE, "command": ["sh", "-c", f"echo {name} >> /starts/{pod}; {script}"],
            "volumeMounts": [{"name": "starts", "mountPath": "/starts"}, {"name": "data", "mountPath": "/data"}], **more}


def pod(name, kind, starts, policy, containers, init=(), medium="", **spec):
    volumes = [{"name": "starts", "hostPath": {"path": str(starts)}},
               {"name": "data", "emptyDir": {"medium": medium} if medium else {}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"kind": kind}},
            "spec": {"restartPolicy": policy, "terminationGracePeriodSeconds": 2, "initContainers": list(init),
                     "containers": containers, "volumes": [*volumes, *spec.pop("volumes", [])], **spec}}


def once(name, starts):
    """Two steps and the work: it may run once, and succeeds."""
    return pod(name, "once", starts, "Never",
               [container(name, "work", "[ -e /data/second ]")],
               [container(name, "first", "touch /data/first"), container(name, "second", "cp /data/first /data/second")])


def again(name, starts):
    """Fails when it is run first."""
    return pod(name, "again", starts, "OnFailure",
               [container(name, "work", "[ -e /data/tried ] || { touch /data/tried; exit 1; }")])


def server(name, starts):
    """Goes on until it is deleted: with volumes of all sorts that need no plugin, and a probe."""
    main = container(name, "main", "cp /config/word /data/word; " + FOREVER,
                     readinessProbe={"exec": {"command": ["grep", "-q", "hello", "/data/word"]}, "periodSeconds": 1})
    main["volumeMounts"] += [{"name": "config", "mountPath": "/config"}, {"name": "data", "mountPath": "/part", "subPath": "part"},
                             {"name": "about", "mountPath": "/about"}]
    return pod(name, "server", starts, "Always", [main], medium="Memory", volumes=[
        {"name": "config", "configMap": {"name": "words"}},
        {"name": "about", "projected": {"sources": [
            {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"serviceAccountToken": {"path": "token"}}]}}])


def helped(name, starts):
    """Work beside a sidecar, which has to go when the work is done."""
    return pod(name, "helped", starts, "Never",
               [container(name, "work", "[ -e /data/ready ]")],
               [container(name, "helper", "touch /data/ready; " + FOREVER, restartPolicy="Always",
                          startupProbe={"exec": {"command": ["test", "-e", "/data/ready"]}, "periodSeconds": 1})])


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": {"word": "hello\n"}}


def manifest(*objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def make(kind, name, starts):
    return globals()[kind](name, starts)


def is_done(pod):
    """Whether the pod has come to what its kind is meant to come to."""
    status = pod["status"]
    if pod["metadata"]["labels"]["kind"] == "server":
        return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))
    return status["phase"] == "Succeeded"
