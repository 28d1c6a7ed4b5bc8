#include "ctl/cluster/static_pod.h"

#include <boost/json.hpp>

#include "ctl/host/paths.h"
#include "ctl/output.h"
#include "lib/component/document.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

constexpr char kDefaultImage[] = "registry.k8s.io/pause:3.10.1";

json::object Probe(const StaticControlPlane& wanted, const char* path, int period, int failures) {
  json::object get;
  get["host"] = wanted.address;
  get["path"] = path;
  get["port"] = wanted.port;
  get["scheme"] = "HTTPS";
  json::object out;
  out["httpGet"] = std::move(get);
  out["periodSeconds"] = period;
  out["timeoutSeconds"] = 15;
  out["failureThreshold"] = failures;
  return out;
}

// Volumes and mounts of the host's directories at their own paths.
struct Mounts {
  json::array volumes, mounts;

  void Add(const std::string& path, bool read_only) {
    const std::string name = "host-" + std::to_string(volumes.size());
    volumes.push_back(json::object{{"name", name}, {"hostPath", {{"path", path}, {"type", "Directory"}}}});
    json::object mount{{"name", name}, {"mountPath", path}};
    if (read_only) mount["readOnly"] = true;
    mounts.push_back(std::move(mount));
  }
};

// As the unit kube-controlplane restricts it, as far as a pod can.
json::object SecurityOf(const StaticControlPlane& wanted) {
  json::object out;
  out["runAsUser"] = wanted.uid;
  out["runAsGroup"] = wanted.gid;
  out["runAsNonRoot"] = true;
  out["allowPrivilegeEscalation"] = false;
  out["readOnlyRootFilesystem"] = true;
  out["capabilities"] = {{"drop", json::array{"ALL"}}};
  return out;
}

json::object ContainerOf(const StaticControlPlane& wanted, json::array mounts) {
  json::array command = {"/usr/bin/kube-controlplane", std::string("--data-dir=") + paths::kControlPlaneData};
  for (const std::string& flag : wanted.flags) command.emplace_back(flag);
  json::object out;
  out["name"] = kControlPlanePod;
  out["image"] = wanted.image;
  out["imagePullPolicy"] = "IfNotPresent";
  out["command"] = std::move(command);
  // It starts etcd by its name.
  out["env"] = json::array{json::object{{"name", "PATH"}, {"value", "/usr/sbin:/usr/bin"}}};
  out["resources"] = {{"requests", {{"cpu", "250m"}}}};
  out["securityContext"] = SecurityOf(wanted);
  // Its etcd may have a long log to read: as long as the unit's TimeoutStartSec=.
  out["startupProbe"] = Probe(wanted, "/livez", 1, 300);
  out["livenessProbe"] = Probe(wanted, "/livez", 10, 8);
  out["readinessProbe"] = Probe(wanted, "/readyz", 1, 3);
  mounts.push_back(json::object{{"name", "tmp"}, {"mountPath", "/tmp"}});
  out["volumeMounts"] = std::move(mounts);
  return out;
}

json::object MetadataOf(const StaticControlPlane& wanted) {
  const bool member = !wanted.etcd_url.empty();
  json::object annotations{{kBegunAnnotation, wanted.begun}};
  if (member) annotations[kEtcdUrlAnnotation] = wanted.etcd_url;
  json::object out;
  out["name"] = kControlPlanePod;
  out["namespace"] = "kube-system";
  // kubeadm finds members of etcd by this label alone.
  out["labels"] = {{"component", member ? "etcd" : kControlPlanePod},
                   {"tier", "control-plane"},
                   {"app.kubernetes.io/name", kControlPlanePod}};
  out["annotations"] = std::move(annotations);
  return out;
}

}  // namespace

std::string ControlPlaneManifest(const StaticControlPlane& wanted) {
  Mounts host;
  for (const std::string& directory : wanted.directories) host.Add(directory, true);
  host.Add(paths::kControlPlaneData, false);
  host.Add(paths::kControlPlaneLogs, false);
  json::array containers;
  containers.push_back(ContainerOf(wanted, std::move(host.mounts)));
  host.volumes.push_back(json::object{{"name", "tmp"}, {"emptyDir", json::object()}});
  json::object spec;
  spec["hostNetwork"] = true;
  spec["priorityClassName"] = "system-node-critical";
  spec["terminationGracePeriodSeconds"] = 60;
  spec["securityContext"] = {{"seccompProfile", {{"type", "RuntimeDefault"}}}};
  spec["containers"] = std::move(containers);
  spec["volumes"] = std::move(host.volumes);
  json::object out;
  out["apiVersion"] = "v1";
  out["kind"] = "Pod";
  out["metadata"] = MetadataOf(wanted);
  out["spec"] = std::move(spec);
  return "# Written by nodectl; flags of the administrator are in /etc/default/kube-controlplane.\n" +
         ToYaml(out);
}

Result<std::string> ImageOfManifest(const std::string& manifest) {
  component::DocumentProblems problems;
  KEELSON_ASSIGN_OR_RETURN(const json::object document, component::ParseDocument(manifest, problems));
  boost::system::error_code failed;
  const json::value whole = document;
  const json::value* image = whole.find_pointer("/spec/containers/0/image", failed);
  if (!failed && image && image->is_string()) return std::string(image->get_string());
  return Error(Code::kInvalid, std::string(paths::kControlPlaneManifest) + " names no image");
}

std::string SandboxImage(const std::string& config) {
  boost::system::error_code failed;
  const json::value document = json::parse(config, failed);
  if (failed || !document.is_object()) return kDefaultImage;
  const json::value* image = document.get_object().if_contains("sandboxImage");
  return image && image->is_string() && !image->get_string().empty() ? std::string(image->get_string())
                                                                     : kDefaultImage;
}

}  // namespace keelson::ctl
