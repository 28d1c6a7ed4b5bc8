// Internal to lib/k8s: checks of single values against a node of a schema. Each appends to `errors`.
#pragma once

#include <string_view>

#include <boost/json/value.hpp>

#include "lib/k8s/field_error.h"
#include "lib/k8s/schema/nodes.h"
#include "lib/k8s/schema/place.h"

namespace keelson::k8s {

// Whether the value has the node's type.
bool CheckValueType(const SchemaNodes& nodes, const SchemaNode& node, const boost::json::value& value,
                    const Place& place, FieldErrors& errors);
void CheckEnum(const SchemaNodes& nodes, const ValueChecks& checks, const boost::json::value& value,
               const Place& place, FieldErrors& errors);
void CheckString(const SchemaNodes& nodes, const ValueChecks& checks, std::string_view text,
                 const Place& place, FieldErrors& errors);
void CheckFormat(std::string_view format, const boost::json::value& text, const Place& place,
                 FieldErrors& errors);
// `number` must be one.
void CheckNumber(const ValueChecks& checks, const boost::json::value& number, const Place& place,
                 FieldErrors& errors);
void CheckListSize(const ValueChecks& checks, const boost::json::array& list, const Place& place,
                   FieldErrors& errors);
// Whether the object has neither too few nor too many members.
bool CheckObjectSize(const ValueChecks& checks, const boost::json::object& object, const Place& place,
                     FieldErrors& errors);
// additionalProperties: false.
void AddForbiddenMember(std::string_view name, const Place& place, FieldErrors& errors);

}  // namespace keelson::k8s
