#include "controlplane/apiserver/authz/node.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiserver/authz/bootstrap_policy.h"
#include "controlplane/apiserver/authz/rbac.h"
#include "lib/api/selector.h"

namespace keelson::apiserver {
namespace {

Decision Allow() { return {true, "", ""}; }
Decision Pass(std::string reason = "") { return {false, std::move(reason), ""}; }

bool IsOneOf(std::string_view verb, std::initializer_list<std::string_view> verbs) {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

// One authorization check for one node.
class Question {
 public:
  Question(const NodeGraph& graph, const std::string& node, const RequestInfo& request)
      : graph_(graph), node_(node), request_(request) {}

  // Nullopt: the resource is not restricted to the node.
  std::optional<Decision> Answer() const {
    using Method = Decision (Question::*)() const;
    struct Row {
      std::string_view group, resource;
      Method method;
    };
    static constexpr Row kRows[] = {
        {"", "secrets", &Question::ReadNamespaced},
        {"", "configmaps", &Question::ReadNamespaced},
        {"", "persistentvolumeclaims", &Question::Claim},
        {"", "persistentvolumes", &Question::Get},
        {"resource.k8s.io", "resourceclaims", &Question::Get},
        {"storage.k8s.io", "volumeattachments", &Question::Get},
        {"", "serviceaccounts", &Question::ServiceAccount},
        {"coordination.k8s.io", "leases", &Question::Lease},
        {"storage.k8s.io", "csinodes", &Question::CsiNode},
        {"resource.k8s.io", "resourceslices", &Question::Slice},
        {"certificates.k8s.io", "podcertificaterequests", &Question::PodCertificate},
        {"", "nodes", &Question::Node},
        {"", "pods", &Question::Pod},
    };
    for (const Row& row : kRows) {
      if (row.group == request_.group && row.resource == request_.resource) return (this->*row.method)();
    }
    return std::nullopt;
  }

 private:
  bool Verb(std::initializer_list<std::string_view> verbs) const { return IsOneOf(request_.verb, verbs); }

  Decision Related() const {
    if (request_.name.empty()) return Pass("No Object name found");
    return RelatedByGraph();
  }
  Decision RelatedByGraph() const {
    if (graph_.Related(node_, request_.resource, request_.ns, request_.name)) return Allow();
    return Pass(fmt::format("no relationship found between node '{}' and this object", node_));
  }

  Decision Get() const {
    if (request_.verb != "get") return Pass("can only get individual resources of this type");
    if (!request_.subresource.empty()) return Pass("cannot get subresource");
    return Related();
  }

  Decision ReadNamespaced() const {
    if (!Verb({"get", "list", "watch"})) return Pass("can only read resources of this type");
    if (!request_.subresource.empty()) return Pass("cannot read subresource");
    if (request_.ns.empty()) return Pass("can only read namespaced object of this type");
    return Related();
  }

  Decision Claim() const {
    if (request_.subresource != "status") return Get();
    if (!Verb({"update", "patch"})) return Pass("can only get/update/patch this type");
    return Related();
  }

  Decision ServiceAccount() const {
    // Image credential providers need the ServiceAccounts of the node's pods.
    if (request_.verb == "get" && request_.subresource.empty()) return Related();
    if (request_.verb != "create" || request_.name.empty()) {
      return Pass("can only create tokens for individual service accounts");
    }
    if (request_.subresource != "token") return Pass("can only create token subresource of serviceaccount");
    return RelatedByGraph();
  }

  Decision Lease() const {
    if (!Verb({"get", "create", "update", "patch", "delete"})) {
      return Pass("can only get, create, update, patch, or delete a node lease");
    }
    if (request_.ns != "kube-node-lease") {
      return Pass("can only access leases in the \"kube-node-lease\" system namespace");
    }
    // The name of a new object is unknown here; NodeRestriction checks it.
    if (request_.verb != "create" && request_.name != node_) {
      return Pass("can only access node lease with the same name as the requesting node");
    }
    return Allow();
  }

  Decision CsiNode() const {
    if (!Verb({"get", "create", "update", "patch", "delete"})) {
      return Pass("can only get, create, update, patch, or delete a CSINode");
    }
    if (!request_.subresource.empty()) return Pass("cannot authorize CSINode subresources");
    if (request_.verb != "create" && request_.name != node_) {
      return Pass("can only access CSINode with the same name as the requesting node");
    }
    return Allow();
  }

  Decision Slice() const {
    if (!request_.subresource.empty()) return Pass("cannot authorize ResourceSlice subresources");
    if (request_.verb == "create") return Allow();
    if (Verb({"get", "update", "patch", "delete"})) return Related();
    if (Verb({"watch", "list", "deletecollection"})) {
      if (Selects("spec.nodeName")) return Allow();
      return Pass("can only list/watch/deletecollection resourceslices with nodeName field selector");
    }
    return Pass(
        "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, "
        "delete, deletecollection");
  }

  Decision PodCertificate() const {
    if (!request_.subresource.empty()) {
      return Pass("nodes may not access the status subresource of PodCertificateRequests");
    }
    if (request_.verb == "create") return Allow();  // NodeRestriction checks the pod
    if (request_.verb == "get") return Get();
    if (Verb({"list", "watch"})) {
      if (Selects("spec.nodeName")) return Allow();
      return Pass("can only list/watch podcertificaterequests with nodeName field selector");
    }
    return Pass("only create, get, list, watch are allowed for a PodCertificateRequest");
  }

  Decision Node() const {
    if (request_.subresource == "status" && Verb({"update", "patch"})) return Allow();
    if (!request_.subresource.empty()) return Pass();
    if (Verb({"create", "update", "patch"})) return Allow();
    if (!Verb({"get", "list", "watch"})) return Pass();
    if (request_.name == node_) return Allow();
    if (request_.name.empty()) {
      return Pass(fmt::format("node '{}' cannot read all nodes, only its own Node object", node_));
    }
    return Pass(fmt::format("node '{}' cannot read '{}', only its own Node object", node_, request_.name));
  }

  Decision Pod() const {
    if (request_.subresource == "status" && Verb({"update", "patch"})) return Allow();
    if (request_.subresource == "eviction" && request_.verb == "create") return Allow();
    if (!request_.subresource.empty()) return Pass();
    if (request_.verb == "get") return Get();
    if (Verb({"create", "delete"})) return Allow();  // mirror pods; NodeRestriction checks that
    if (!Verb({"list", "watch"})) return Pass();
    if (Selects("spec.nodeName")) return Allow();
    if (!request_.name.empty()) return Related();
    return Pass("can only list/watch pods with spec.nodeName field selector");
  }

  // True when the field selector restricts `field` to this node.
  bool Selects(std::string_view field) const {
    Result<api::FieldSelector> selector = api::FieldSelector::Parse(request_.field_selector);
    if (!selector) return false;
    return std::any_of(selector->terms.begin(), selector->terms.end(), [&](const auto& term) {
      return term.equal && term.field == field && term.value == node_;
    });
  }

  const NodeGraph& graph_;
  const std::string& node_;
  const RequestInfo& request_;
};

}  // namespace

std::string NodeNameOf(const User& user) {
  std::string_view name = user.name;
  if (name.substr(0, kUserNodePrefix.size()) != kUserNodePrefix || !user.InGroup(kGroupNodes)) return "";
  return std::string(name.substr(kUserNodePrefix.size()));
}

NodeAuthorizer::NodeAuthorizer(std::shared_ptr<const NodeGraph> graph, const GateOn& on)
    : graph_(std::move(graph)) {
  for (const rbacv1::PolicyRule& rule : NodeRules(on)) rules_.push_back(ToRule(rule));
}

Decision NodeAuthorizer::Authorize(const Attributes& attributes) const {
  std::string node = NodeNameOf(attributes.user);
  if (node.empty()) return {};
  const RequestInfo& request = attributes.request;
  if (request.is_resource) {
    if (std::optional<Decision> decision = Question(*graph_, node, request).Answer()) return *decision;
  }
  bool allowed =
      std::any_of(rules_.begin(), rules_.end(), [&](const PolicyRule& r) { return Allows(r, request); });
  return allowed ? Allow() : Pass();
}

UserRules NodeAuthorizer::RulesFor(const User& user, std::string_view) const {
  if (NodeNameOf(user).empty()) return {};
  return {{}, true, "node authorizer does not support user rule resolution"};
}

}  // namespace keelson::apiserver
