// What expressions see of a request.
#pragma once

#include <optional>

#include <boost/json/value.hpp>

#include "controlplane/apiserver/admission/admission.h"
#include "controlplane/apiserver/admission/expressions/authorizer.h"
#include "lib/api/proto/admission_v1.pb.h"
#include "lib/cel/values/value.h"

namespace keelson::apiserver {

// An object as a value. Built-in kinds are read where they are; of a custom resource the JSON is made, once.
class ExpressionObject {
 public:
  // Null: no object. Object and row have to outlive this.
  ExpressionObject(const api::Message* object, const api::ResourceInfo& row) : object_(object), row_(row) {}
  // Lives as long as this and the arena.
  cel::Value Value(cel::Arena& arena) const;

 private:
  const api::Message* object_;
  const api::ResourceInfo& row_;
  mutable std::optional<boost::json::value> json_;
};

// One request in one version. What it refers to has to outlive it. Not for concurrent use.
class ExpressionInput {
 public:
  // `row`: of the version that the rules want to see, in which the objects are. `ns` null: namespaceObject is null.
  ExpressionInput(const AdmissionRequest& request, const api::ResourceInfo& row, const api::Message* object,
                  const api::Message* old_object, const corev1::Namespace* ns,
                  const apiserver::Authorizer& authorizer);

  const AdmissionRequest& request() const { return request_; }
  const api::ResourceInfo& row() const { return row_; }

  // The variables of that name.
  cel::Value Object(cel::Arena& arena) const { return object_.Value(arena); }
  cel::Value OldObject(cel::Arena& arena) const { return old_object_.Value(arena); }
  cel::Value Request(cel::Arena& arena) const;
  cel::Value Namespace(cel::Arena& arena) const;
  cel::Value Authorizer(cel::Arena& arena) const;
  cel::Value RequestResource(cel::Arena& arena) const;

 private:
  class DeferredMap;
  class RequestMap;
  class NamespaceMap;

  const AdmissionRequest& request_;
  const api::ResourceInfo& row_;
  ExpressionObject object_, old_object_;
  const corev1::Namespace* ns_;
  ExpressionAuthorizer authorizer_;
  // Made when an expression looks at them.
  mutable std::optional<api::admission::v1::AdmissionRequest> message_;
  mutable std::optional<boost::json::value> namespace_;
};

}  // namespace keelson::apiserver
