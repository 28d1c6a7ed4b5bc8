// Objects of custom resources, by the schemas of their definitions. `row`: of a main resource or its status, at the
// version of the object. Rows without a definition or a schema at present keep an object as it is.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "controlplane/apiextensions/custom_resource.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiextensions {

using api::Message;

// Makes an object that a client sent follow the schema: prunes and sets defaults. Returns the unknown fields in the
// words of strict field validation. kInvalid or kBadRequest for metadata of a wrong type.
Result<std::vector<std::string>> Coerce(const CustomRow& row, Message& object);
// The same, of content that takes the place of the object's.
Result<std::vector<std::string>> CoerceContent(const CustomRow& row, boost::json::object content,
                                               Message& object);
// Sets defaults only.
void SetDefaults(const CustomRow& row, Message& object);

// An object from the JSON that etcd has, pruned and with its defaults, in the version that it was stored in. Sets
// `stored` to that version's row. kInternal for what is no object of the resource.
Result<std::unique_ptr<Message>> ReadStored(const CustomRow& row, std::string_view json,
                                            const CustomRow*& stored);

// An object of another version of the same resource, by the conversion strategy None: nothing but the version
// changes, and the schema of `to` applies.
std::unique_ptr<Message> Relabel(const CustomRow& to, const Message& object);

// Whether the object satisfies the schema and its rules. `old`: null on create. `status_only`: errors of the schema
// outside of status do not count, for writes to that subresource.
k8s::FieldErrors Validate(const CustomRow& row, const Message& object, const Message* old, bool status_only);

// The value of a selectable field, as selectors compare it; empty when it is absent.
std::string SelectableValue(const Message& object, std::string_view field);

}  // namespace keelson::apiextensions
