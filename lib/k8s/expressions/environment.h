// What expressions of admission may use: match conditions of webhooks, and all of admission policies
// (k8s.io/apiserver/pkg/admission/plugin/cel).
//
//   object, oldObject, params          as their JSON says, without types
//   request                            AdmissionRequest, without uid and the objects
//   namespaceObject                    the namespace, without managed fields and owners
//   authorizer, authorizer.requestResource
//   variables                          of the policy, those above the expression
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lib/cel/env.h"

namespace keelson::k8s {

struct ExpressionScope {
  bool params = false;
  bool authorizer = true;    // not for messageExpressions
  bool patch_types = false;  // Object{}, JSONPatch{} and jsonpatch.escapeKey
  // In etcd already: it may use all that this version knows.
  bool stored = true;

  auto operator<=>(const ExpressionScope&) const = default;
};

// Types of objects and parameters, for type checking; null: dyn.
struct ExpressionTypes {
  cel::DeclTypePtr object, params;
};

using ExpressionVariables = std::vector<std::pair<std::string, cel::DeclTypePtr>>;

// An environment, and where its variables are; -1: it has no such variable. Immutable.
struct ExpressionEnv {
  cel::EnvPtr env;
  int object = -1, old_object = -1, ns = -1, request = -1;
  int params = -1, authorizer = -1, request_resource = -1, variables = -1;
};

// Without variables of a policy. Made once for each scope. Thread safe.
const ExpressionEnv& ExpressionEnvOf(const ExpressionScope& scope);
// `variables` null: the environment has none.
ExpressionEnv MakeExpressionEnv(const ExpressionScope& scope, const ExpressionVariables* variables,
                                const ExpressionTypes& types = {});

const cel::DeclTypePtr& AdmissionRequestType();
const cel::DeclTypePtr& NamespaceObjectType();

}  // namespace keelson::k8s
