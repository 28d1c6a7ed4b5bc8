// For tests: API objects of a few words.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/error.h"
#include "lib/base/ip.h"

namespace keelson::policies {

namespace networkingv1 = api::networking::v1;

// `name`: NAMESPACE/NAME, here and below. The pod's UID is "uid-" and its name, a label `pod` its name within the
// namespace. It names its ports serve-80-tcp, serve-81-udp and so on, and calls a TCP port `web`: in namespace z
// none, of the pods named a 80, of others 81.
corev1::Pod MakePod(const std::string& name, const std::string& node,
                    const std::map<std::string, std::string>& labels,
                    const std::vector<IpAddress>& addresses);
corev1::Namespace MakeNamespace(const std::string& name, const std::map<std::string, std::string>& labels);
// With the labels `kubernetes.io/os`: linux and `node`: its name.
corev1::Node MakeNode(const std::string& name, const std::vector<IpAddress>& addresses);
// `spec`: a NetworkPolicySpec as JSON. Without policyTypes those that the API server would set.
Result<networkingv1::NetworkPolicy> MakePolicy(const std::string& name, const std::string& spec);

}  // namespace keelson::policies
