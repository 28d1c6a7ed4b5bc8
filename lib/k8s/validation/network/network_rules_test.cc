// Endpoints, EndpointSlices, Ingresses, NetworkPolicies.
#include "lib/k8s/testing/rule_cases.h"

namespace keelson::k8s {
namespace {

TEST(NetworkRules, Endpoints) {
  const auto subset = [](const std::string& text) { return Namespaced(R"("subsets":[{)" + text + "}]"); };
  ExpectErrors({
      {"v1", "Endpoints", subset(R"("addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":80}])"), {}},
      {"v1",
       "Endpoints",
       subset(""),
       {"subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"}},
      {"v1",
       "Endpoints",
       subset(
           R"("notReadyAddresses":[{"ip":"127.0.0.1"},{"ip":"169.254.1.1"},{"ip":"224.0.0.1"},{"ip":"::"}])"),
       {"subsets[0].notReadyAddresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range "
        "(127.0.0.0/8, ::1/128)",
        "subsets[0].notReadyAddresses[1].ip: Invalid value: \"169.254.1.1\": may not be in the link-local "
        "range "
        "(169.254.0.0/16, fe80::/10)",
        "subsets[0].notReadyAddresses[2].ip: Invalid value: \"224.0.0.1\": may not be in the link-local "
        "multicast range "
        "(224.0.0.0/24, ff02::/10)",
        "subsets[0].notReadyAddresses[3].ip: Invalid value: \"::\": may not be unspecified (::)"}},
      {"v1",
       "Endpoints",
       subset(
           R"("addresses":[{"ip":"10.0.0.1"}],"ports":[{"port":0,"name":"a"},{"port":80,"protocol":"X"}])"),
       {"subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        "subsets[0].ports[1].name: Required value",
        "subsets[0].ports[1].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", "
        "\"UDP\""}},
  });
}

TEST(NetworkRules, EndpointSlices) {
  ExpectErrors({
      {"discovery.k8s.io/v1",
       "EndpointSlice",
       Namespaced(
           R"("addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],"hints":{"forZones":[{"name":"a"}]}}])"),
       {}},
      {"discovery.k8s.io/v1",
       "EndpointSlice",
       Namespaced(R"("endpoints":[{"addresses":[]}])"),
       {"addressType: Required value",
        "endpoints[0].addresses: Required value: must contain at least 1 address"}},
      {"discovery.k8s.io/v1",
       "EndpointSlice",
       Namespaced(R"("addressType":"IPv4","endpoints":[{"addresses":["fd00::1"]}])"),
       {"endpoints[0].addresses[0]: Invalid value: \"fd00::1\": must be an IPv4 address"}},
      {"discovery.k8s.io/v1",
       "EndpointSlice",
       Namespaced(
           R"("addressType":"FQDN","endpoints":[{"addresses":["local"],"hints":{"forZones":[{"name":"a"},{"name":"a"}]}}])"),
       {"endpoints[0].addresses[0]: Invalid value: \"local\": should be a domain with at least two segments "
        "separated by "
        "dots",
        "endpoints[0].hints.forZones[1].name: Duplicate value: \"a\""}},
      {"discovery.k8s.io/v1",
       "EndpointSlice",
       Namespaced(R"("addressType":"IPv4","endpoints":[],"ports":[{"name":""},{"name":""}])"),
       {"ports[1].name: Duplicate value: \"\""}},
  });
  ExpectChangeErrors(ValidateUpdate, {{"discovery.k8s.io/v1",
                                       "EndpointSlice",
                                       Namespaced(R"("addressType":"IPv4","endpoints":[])"),
                                       Namespaced(R"("addressType":"IPv6","endpoints":[])"),
                                       {"addressType: Invalid value: \"IPv6\": field is immutable"}}});
}

std::string Path(const std::string& path) {
  return Namespaced(R"("spec":{"rules":[{"http":{"paths":[{)" + path + "}]}}]}");
}
constexpr char kBackend[] = R"("backend":{"service":{"name":"s","port":{"number":80}}})";

TEST(NetworkRules, Ingresses) {
  constexpr char kV1[] = "networking.k8s.io/v1";
  ExpectErrors({
      {kV1, "Ingress", Path(std::string(R"("path":"/","pathType":"Prefix",)") + kBackend), {}},
      // Names of Services may begin with a digit.
      {kV1,
       "Ingress",
       Namespaced(R"("spec":{"defaultBackend":{"service":{"name":"1s","port":{"number":80}}}})"),
       {}},
      {kV1,
       "Ingress",
       Namespaced(R"("spec":{})"),
       {"spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"}},
      {kV1,
       "Ingress",
       Path(kBackend),
       {"spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"}},
      {kV1,
       "Ingress",
       Path(std::string(R"("path":"a//b/..","pathType":"Exact",)") + kBackend),
       {"spec.rules[0].http.paths[0].path: Invalid value: \"a//b/..\": must be an absolute path",
        "spec.rules[0].http.paths[0].path: Invalid value: \"a//b/..\": must not contain '//'",
        "spec.rules[0].http.paths[0].path: Invalid value: \"a//b/..\": cannot end with '/..'"}},
      {kV1,
       "Ingress",
       Path(std::string(R"("path":"/","pathType":"Odd",)") + kBackend),
       {"spec.rules[0].http.paths[0].pathType: Unsupported value: \"Odd\": supported values: \"Exact\", "
        "\"ImplementationSpecific\", \"Prefix\""}},
      {kV1,
       "Ingress",
       Namespaced(R"("spec":{"defaultBackend":{}})"),
       {"spec.defaultBackend: Invalid value: \"\": resource or service backend is required"}},
      {kV1,
       "Ingress",
       Namespaced(R"("spec":{"defaultBackend":{"service":{"name":"s"}}})"),
       {"spec.defaultBackend: Required value: port name or number is required"}},
      {kV1,
       "Ingress",
       Namespaced(R"("spec":{"defaultBackend":{"service":{"name":"s","port":{"name":"p","number":1}}}})"),
       {"spec.defaultBackend: Invalid value: \"\": cannot set both port name & port number"}},
      {kV1,
       "Ingress",
       Namespaced(R"("spec":{"rules":[{"host":"10.0.0.1"},{"host":"*.b.*"}]})"),
       {"spec.rules[0].host: Invalid value: \"10.0.0.1\": must be a DNS name, not an IP address",
        "spec.rules[1].host: Invalid value: \"*.b.*\": a wildcard DNS-1123 subdomain must start with '*.', "
        "followed by a "
        "valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end "
        "with an "
        "alphanumeric character (e.g. '*.example.com', regex used for validation is "
        "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}},
      // A Service's name may begin with a digit.
      {kV1,
       "Ingress",
       Namespaced(R"("spec":{"defaultBackend":{"service":{"name":"1s","port":{"number":1}}}})"),
       {}},
      {kV1,
       "Ingress",
       Namespaced(R"("spec":{"defaultBackend":{"service":{"name":"s.t","port":{"number":1}}}})"),
       {"spec.defaultBackend.service.name: Invalid value: \"s.t\": must not contain dots"}},
      {kV1,
       "IngressClass",
       Cluster(R"("spec":{"controller":"nodomain"})"),
       {"spec.controller: Invalid value: \"nodomain\": must be a domain-prefixed path (such as "
        "\"acme.io/foo\")"}},
      {kV1,
       "IngressClass",
       Cluster(R"("spec":{"controller":"a.io/c","parameters":{"kind":"K","name":"n","scope":"Namespace"}})"),
       {"spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"}},
      {kV1,
       "Ingress",
       R"({"metadata":{"name":"x","namespace":"d","annotations":{"kubernetes.io/ingress.class":"a"}},)"
       R"("spec":{"ingressClassName":"b","defaultBackend":{"resource":{"kind":"K","name":"n"}}}})",
       {"annotations.kubernetes.io/ingress.class: Invalid value: \"a\": must match `ingressClassName` when "
        "both are "
        "specified"}},
  });
  ExpectChangeErrors(ValidateUpdate, {{kV1,
                                       "IngressClass",
                                       Cluster(R"("spec":{"controller":"a.io/c"})"),
                                       Cluster(R"("spec":{"controller":"b.io/c"})"),
                                       {"spec.controller: Invalid value: \"b.io/c\": field is immutable"}}});
  ExpectChangeErrors(
      ValidateStatusUpdate,
      {{kV1,
        "Ingress",
        Namespaced(R"("spec":{})"),
        Namespaced(R"("status":{"loadBalancer":{"ingress":[{"ip":"x"},{"hostname":"10.0.0.1"}]}})"),
        {"status.loadBalancer.ingress[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. "
         "10.9.8.7 or 2001:db8::ffff)",
         "status.loadBalancer.ingress[1].hostname: Invalid value: \"10.0.0.1\": must be a DNS name, not an "
         "IP address"}}});
}

TEST(NetworkRules, Policies) {
  const auto policy = [](const std::string& rule) {
    return Namespaced(R"("spec":{"podSelector":{},"ingress":[{)" + rule + "}]}");
  };
  constexpr char kV1[] = "networking.k8s.io/v1";
  ExpectErrors({
      {kV1,
       "NetworkPolicy",
       policy(R"("from":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16"]}}])"),
       {}},
      {kV1,
       "NetworkPolicy",
       policy(R"("from":[{}])"),
       {"spec.ingress[0].from[0]: Required value: must specify a peer"}},
      {kV1,
       "NetworkPolicy",
       policy(R"("from":[{"podSelector":{},"ipBlock":{"cidr":"10.0.0.0/8"}}])"),
       {"spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer"}},
      {kV1,
       "NetworkPolicy",
       policy(R"("from":[{"ipBlock":{"cidr":"10.0.0.0/16","except":["10.1.0.0/24","10.0.0.0/16"]}}])"),
       {"spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"10.1.0.0/24\": must be a strict subset "
        "of `cidr`",
        "spec.ingress[0].from[0].ipBlock.except[1]: Invalid value: \"10.0.0.0/16\": must be a strict subset "
        "of `cidr`"}},
      {kV1,
       "NetworkPolicy",
       policy(R"("ports":[{"port":90,"endPort":80},{"port":"http","endPort":80},{"endPort":1}])"),
       {"spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to `port`",
        "spec.ingress[0].ports[1].endPort: Invalid value: 80: may not be specified when `port` is "
        "non-numeric",
        "spec.ingress[0].ports[2].endPort: Invalid value: 1: may not be specified when `port` is not "
        "specified"}},
      {kV1,
       "NetworkPolicy",
       policy(R"("ports":[{"protocol":"X"}])"),
       {"spec.ingress[0].ports[0].protocol: Unsupported value: \"X\": supported values: \"TCP\", \"UDP\", "
        "\"SCTP\""}},
  });
}

}  // namespace
}  // namespace keelson::k8s
