#include <boost/json/serialize.hpp>

#include "ctl/config/read.h"
#include "lib/base/text.h"
#include "lib/component/document.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

// The documents of a stream (YAML 1.2, 9.1.4): lines "---" stand between them.
std::vector<std::string> Documents(std::string_view text) {
  std::vector<std::string> out(1);
  for (std::string_view line : Split(text, '\n')) {
    if (line.starts_with("---") && Trim(line.substr(3)).empty()) {
      out.emplace_back();
    } else {
      out.back().append(line).append("\n");
    }
  }
  return out;
}

// Whether anything but comments and white space is in it.
bool HasContent(std::string_view text) {
  for (std::string_view line : Split(text, '\n')) {
    line = Trim(line);
    if (!line.empty() && line[0] != '#') return true;
  }
  return false;
}

std::string Text(const json::object& document, std::string_view field) {
  const json::value* found = document.if_contains(field);
  return found && found->is_string() ? std::string(found->get_string()) : "";
}

std::string Gvk(std::string_view version, std::string_view kind) {
  const size_t slash = version.find('/');
  const std::string group(slash == std::string_view::npos ? "" : version.substr(0, slash));
  const std::string rest(slash == std::string_view::npos ? version : version.substr(slash + 1));
  return "schema.GroupVersionKind{Group:\"" + group + "\", Version:\"" + rest + "\", Kind:\"" +
         std::string(kind) + "\"}";
}

Error OldVersion(const std::string& version, const std::string& kind) {
  return Error(Code::kBadRequest, "your configuration file uses an old API spec: \"" + version +
                                      "\" (kind: \"" + kind + "\"). Please use " +
                                      std::string(kKubeadmVersion) + " instead");
}

}  // namespace

Result<ConfigDocuments> SplitDocuments(std::string_view text) {
  ConfigDocuments out;
  for (const std::string& one : Documents(text)) {
    if (!HasContent(one)) continue;
    component::DocumentProblems problems;
    KEELSON_ASSIGN_OR_RETURN(json::object document, component::ParseDocument(one, problems));
    const std::string kind = Text(document, "kind"), version = Text(document, "apiVersion");
    if (kind.empty() || version.empty()) {
      return Error(Code::kBadRequest,
                   "invalid configuration for GroupVersionKind " + Gvk(version, kind) +
                       ": kind and apiVersion is mandatory information that must be specified");
    }
    if (!problems.strict.empty()) {
      return Error(Code::kBadRequest, "error unmarshaling configuration " + Gvk(version, kind) +
                                          ": strict decoding error: " + Join(problems.strict, ", "));
    }
    std::optional<json::object>* place = nullptr;
    if (version.starts_with("kubeadm.k8s.io/")) {
      place = kind == "InitConfiguration"      ? &out.init
              : kind == "ClusterConfiguration" ? &out.cluster
              : kind == "JoinConfiguration"    ? &out.join
              : kind == "ResetConfiguration"   ? &out.reset
              : kind == "UpgradeConfiguration" ? &out.upgrade
                                               : nullptr;
      if (place && version != kKubeadmVersion) return OldVersion(version, kind);
    } else if (version == "kubelet.config.k8s.io/v1beta1" && kind == "KubeletConfiguration") {
      place = &out.kubelet;
    } else if (version == "kubeproxy.config.k8s.io/v1alpha1" && kind == "KubeProxyConfiguration") {
      place = &out.proxy;
    }
    if (!place) {
      out.warnings.push_back("Ignored configuration document with GroupVersionKind " + Gvk(version, kind));
      continue;
    }
    if (*place) {
      return Error(Code::kBadRequest,
                   "invalid configuration: kind \"" + kind + "\" is specified twice in YAML file");
    }
    *place = std::move(document);
  }
  return out;
}

}  // namespace keelson::ctl
