// Checks before a machine is changed, with kubeadm's names and texts. Each looks at the machine alone.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "ctl/config/documents.h"
#include "ctl/host/host.h"
#include "lib/base/error.h"

namespace keelson::ctl {

struct Findings {
  std::vector<std::string> warnings, errors;
};
struct Check {
  std::string name;  // Port-6443
  std::function<Findings(const Host&)> run;
};
using Checks = std::vector<Check>;

// Runs all of them and prints what they find, in kubeadm's form. kInvalid "preflight checks failed": one found an error.
// `ignored` has names, case does not matter, whose errors are warnings; "all" stands for all of them.
Result<> RunChecks(const Checks& checks, const Host& host, const std::vector<std::string>& ignored,
                   std::ostream& out);
// The names of `given`, in lower case. kInvalid: "all" beside others.
Result<std::vector<std::string>> IgnoredChecks(const std::vector<std::string>& given);

// ---- which checks a verb makes ----

Check PrivilegedUserCheck();
// `resumes`: an earlier run has not ended; what it has left and started is no obstacle.
// `static_pod`: the control plane is to be one, not a unit.
Checks InitChecks(const InitConfiguration& config, bool resumes, bool static_pod = false);
// More, where the cluster's nodes run kube-cni, which a machine that joins learns later.
Checks CniChecks();
// Of a machine that becomes part of the control plane, beside those of every node.
Checks ControlPlaneChecks(const InitConfiguration& config, bool resumes, bool static_pod = false);
// Of the runtime's settings, for a kubelet with this cgroup driver (empty: systemd). `kube_cni`: the pod network's plugins are
// keelson-cni's.
Checks RuntimeConfigChecks(const std::string& cri_socket, const std::string& cgroup_driver, bool kube_cni);
// Of a machine whose etcd others are to reach.
Checks EtcdPortChecks();
Checks JoinChecks(const JoinConfiguration& config, bool resumes);

}  // namespace keelson::ctl
