#include "ctl/config/fields.h"

namespace keelson::ctl {

using component::DocumentReader;
using component::Zero;

void ReadFields(DocumentReader& in, Argument& out) {
  in.Read("name", out.name);
  in.Read("value", out.value);
  if (out.name.empty()) in.Problem("name", "Required value: the argument name cannot be empty");
}

void ReadFields(DocumentReader& in, Taint& out) {
  in.Read("key", out.key);
  in.Read("value", out.value);
  in.Read("effect", out.effect);
  in.Ignore({"timeAdded"});
}

void WithoutEffect(DocumentReader& in, std::initializer_list<std::string_view> fields, std::string_view why,
                   std::vector<std::string>& warnings) {
  for (std::string_view field : fields) {
    const boost::json::value* value = in.Raw(field);
    if (!value || (value->is_array() && value->get_array().empty()) ||
        (value->is_object() && value->get_object().empty()) ||
        (value->is_string() && value->get_string().empty())) {
      continue;
    }
    warnings.push_back(in.PathOf(field) + " has no effect: " + std::string(why));
  }
}

void ReadPatches(DocumentReader& in, std::string& directory) {
  in.Object("patches", [&](DocumentReader& patches) { patches.Read("directory", directory); });
}

void ReadNode(DocumentReader& in, NodeRegistration& out, std::vector<std::string>& warnings) {
  in.Object("nodeRegistration", [&](DocumentReader& node) {
    node.Read("name", out.name);
    node.Read("criSocket", out.cri_socket);
    if (node.Has("taints")) node.Read("taints", out.taints.emplace());
    node.Read("kubeletExtraArgs", out.kubelet_extra_args);
    node.Read("ignorePreflightErrors", out.ignore_preflight_errors);
    WithoutEffect(node, {"imagePullPolicy", "imagePullSerial"},
                  "no image is pulled: daemons are units of systemd", warnings);
  });
}

void ReadTimeouts(DocumentReader& in, Timeouts& out) {
  in.Object("timeouts", [&](DocumentReader& timeouts) {
    timeouts.Read("controlPlaneComponentHealthCheck", out.control_plane, Zero::kDefault);
    timeouts.Read("kubeletHealthCheck", out.kubelet, Zero::kDefault);
    timeouts.Read("kubernetesAPICall", out.api_call, Zero::kDefault);
    timeouts.Read("etcdAPICall", out.etcd_api_call, Zero::kDefault);
    timeouts.Read("tlsBootstrap", out.tls_bootstrap, Zero::kDefault);
    timeouts.Read("discovery", out.discovery, Zero::kDefault);
    // Of static pods.
    timeouts.Ignore({"upgradeManifests"});
  });
}

Result<> Refuse(const component::DocumentProblems& problems, std::string_view kind) {
  if (problems.empty()) return {};
  const std::string where =
      "error unmarshaling configuration schema.GroupVersionKind{Group:\"kubeadm.k8s.io\", "
      "Version:\"v1beta4\", Kind:\"" +
      std::string(kind) + "\"}: ";
  if (!problems.wrong.empty()) return Error(Code::kInvalid, where + component::Join(problems.wrong, ", "));
  return Error(Code::kInvalid, where + "strict decoding error: " + component::Join(problems.strict, ", "));
}

}  // namespace keelson::ctl
