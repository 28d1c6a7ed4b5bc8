#include "controlplane/controllers/common/names.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace keelson::controllers {

namespace {

// Controllers that only kube-controller-manager has. They may be disabled.
constexpr std::string_view kNotHere[] = {"cloud-node-lifecycle-controller",
                                         "cloud-node-lifecycle",
                                         "device-taint-eviction-controller",
                                         "kube-apiserver-serving-clustertrustbundle-publisher-controller",
                                         "node-route-controller",
                                         "route",
                                         "selinux-warning-controller",
                                         "storage-version-gc",
                                         "storageversion-garbage-collector-controller"};

bool IsNotHere(std::string_view name) {
  return std::find(std::begin(kNotHere), std::end(kNotHere), name) != std::end(kNotHere);
}

}  // namespace

const std::vector<ControllerName>& AllControllers() {
  static const std::vector<ControllerName> all = {
      {"bootstrap-signer-controller", "bootstrapsigner", "bootstrap-signer"},
      {"certificatesigningrequest-approving-controller", "csrapproving", "certificate-controller"},
      {"certificatesigningrequest-cleaner-controller", "csrcleaner", "certificate-controller"},
      {"certificatesigningrequest-signing-controller", "csrsigning", "certificate-controller"},
      {"clusterrole-aggregation-controller", "clusterrole-aggregation", "clusterrole-aggregation-controller"},
      {"cronjob-controller", "cronjob", "cronjob-controller", "concurrent-cron-job-syncs", 5},
      {"daemonset-controller", "daemonset", "daemon-set-controller", "concurrent-daemonset-syncs", 2},
      {"deployment-controller", "deployment", "deployment-controller", "concurrent-deployment-syncs", 5},
      {"disruption-controller", "disruption", "disruption-controller"},
      {"endpoints-controller", "endpoint", "endpoint-controller", "concurrent-endpoint-syncs", 5},
      {"endpointslice-controller", "endpointslice", "endpointslice-controller",
       "concurrent-service-endpoint-syncs", 5},
      {"endpointslice-mirroring-controller", "endpointslicemirroring", "endpointslicemirroring-controller",
       "mirroring-concurrent-service-endpoint-syncs", 5},
      {"ephemeral-volume-controller", "ephemeral-volume", "ephemeral-volume-controller",
       "concurrent-ephemeralvolume-syncs", 5},
      {"garbage-collector-controller", "garbagecollector", "generic-garbage-collector", "concurrent-gc-syncs",
       20},
      {"horizontal-pod-autoscaler-controller", "horizontalpodautoscaling", "horizontal-pod-autoscaler",
       "concurrent-horizontal-pod-autoscaler-syncs", 5},
      {"job-controller", "job", "job-controller", "concurrent-job-syncs", 5},
      {"legacy-serviceaccount-token-cleaner-controller", "legacy-service-account-token-cleaner",
       "legacy-service-account-token-cleaner"},
      {"namespace-controller", "namespace", "namespace-controller", "concurrent-namespace-syncs", 10},
      {"node-ipam-controller", "nodeipam", "node-controller"},
      {"node-lifecycle-controller", "nodelifecycle", "node-controller"},
      {"persistentvolume-attach-detach-controller", "attachdetach", "attachdetach-controller"},
      {"persistentvolume-binder-controller", "persistentvolume-binder", "persistent-volume-binder"},
      {"persistentvolume-expander-controller", "persistentvolume-expander", "expand-controller"},
      {"persistentvolume-protection-controller", "pv-protection", "pv-protection-controller"},
      {"persistentvolumeclaim-protection-controller", "pvc-protection", "pvc-protection-controller"},
      {"pod-garbage-collector-controller", "podgc", "pod-garbage-collector"},
      {"podcertificaterequest-cleaner-controller", "", "podcertificaterequestcleaner"},
      {"replicaset-controller", "replicaset", "replicaset-controller", "concurrent-replicaset-syncs", 5},
      {"replicationcontroller-controller", "replicationcontroller", "replication-controller",
       "concurrent-rc-syncs", 5},
      {"resourceclaim-controller", "resource-claim-controller", "resource-claim-controller",
       "concurrent-resource-claim-syncs", 50},
      {"resourcequota-controller", "resourcequota", "resourcequota-controller",
       "concurrent-resource-quota-syncs", 5},
      {"root-ca-certificate-publisher-controller", "root-ca-cert-publisher", "root-ca-cert-publisher"},
      {"service-cidr-controller", "", "service-cidrs-controller"},
      {"service-lb-controller", "service", "service-controller", "concurrent-service-syncs", 1},
      {"serviceaccount-controller", "serviceaccount", "service-account-controller"},
      {"serviceaccount-token-controller", "serviceaccount-token", "", "concurrent-serviceaccount-token-syncs",
       5},
      {"statefulset-controller", "statefulset", "statefulset-controller", "concurrent-statefulset-syncs", 5},
      {"storage-version-migrator-controller", "", "storage-version-migrator-controller"},
      {"taint-eviction-controller", "", "node-controller"},
      {"token-cleaner-controller", "tokencleaner", "token-cleaner"},
      {"ttl-after-finished-controller", "ttl-after-finished", "ttl-after-finished-controller",
       "concurrent-ttl-after-finished-syncs", 5},
      {"ttl-controller", "ttl", "ttl-controller"},
      {"validatingadmissionpolicy-status-controller", "", "validatingadmissionpolicy-status-controller",
       "concurrent-validating-admission-policy-status-syncs", 5},
      {"volumeattributesclass-protection-controller", "", "volumeattributesclass-protection-controller"},
  };
  return all;
}

std::map<std::string, int, std::less<>> DefaultWorkers() {
  std::map<std::string, int, std::less<>> out;
  for (const ControllerName& one : AllControllers()) {
    if (!one.workers_flag.empty()) out.emplace(one.name, one.workers);
  }
  return out;
}

Result<Selection> Selection::Parse(const std::vector<std::string>& words) {
  Selection out;
  out.words_.clear();
  for (const std::string& word : words) {
    const bool off = !word.empty() && word[0] == '-';
    const std::string_view name = std::string_view(word).substr(off ? 1 : 0);
    if (name == "*" && !off) {
      out.words_.push_back(word);
      continue;
    }
    auto is_meant = [&](const ControllerName& one) {
      return one.name == name || (!one.alias.empty() && one.alias == name);
    };
    const auto& all = AllControllers();
    auto it = std::find_if(all.begin(), all.end(), is_meant);
    if (it == all.end() && off && IsNotHere(name)) continue;
    if (it == all.end()) {
      return Error(Code::kInvalid, "\"" + std::string(name) + "\" is not in the list of known controllers");
    }
    out.words_.push_back((off ? "-" : "") + std::string(it->name));
  }
  return out;
}

bool Selection::Has(std::string_view name) const {
  bool all = false;
  for (std::string_view word : words_) {
    if (word == name) return true;
    if (word.substr(0, 1) == "-" && word.substr(1) == name) return false;
    all = all || word == "*";
  }
  return all;
}

std::string AccountOf(std::string_view name) {
  for (const ControllerName& one : AllControllers()) {
    if (one.name == name) return std::string(one.account);
  }
  std::abort();
}

}  // namespace keelson::controllers
