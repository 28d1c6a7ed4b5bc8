// Rules of x-kubernetes-validations, evaluated on custom resources (KEP-2876).
#pragma once

#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "lib/k8s/field_error.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s {

// Evaluates the rules of a schema and appends their errors to `errors`, which holds those of the other checks: some of
// them (wrong types, missing values, lengths) keep the rules from being looked at, and an error says so. `old`: the
// stored object of an update, for transition rules; errors of other rules about parts that did not change go to
// `warnings`, if given. Programs are compiled on first use and kept with the schema. Thread safe. Takes no longer than
// upstream's cost limits allow.
void ValidateRules(const StructuralSchema& schema, const boost::json::value& object,
                   const boost::json::value* old, FieldErrors& errors,
                   std::vector<std::string>* warnings = nullptr);

}  // namespace keelson::k8s
