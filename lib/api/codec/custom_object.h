// Objects of custom resources: one message type for all kinds (proto/custom_object.proto), with metadata as a
// message and everything else as JSON text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "lib/api/scheme.h"
#include "lib/base/error.h"

namespace keelson::api {

// Reads JSON as Go reads an object without a Go type: a byte that is not UTF-8 becomes U+FFFD. kBadRequest: the text is
// not JSON, or it nests deeper than 1000 levels.
Result<boost::json::value> ParseTree(std::string_view text);

// The members of an object but kind, apiVersion and metadata, as a tree. Empty for an object without any.
// kBadRequest: the text nests deeper than 1000 levels.
Result<boost::json::object> ContentOf(const Message& custom);
// Their text, empty for none: equal contents that SetContent() has set have equal texts.
const std::string& ContentText(const Message& custom);
// Sets them. Members are sorted by name at every level and numbers are printed as Go prints them, so equal
// contents have equal texts.
void SetContent(Message& custom, const boost::json::object& content);
// The text that SetContent() stores, of any value.
std::string CanonicalJson(const boost::json::value& value);

// The whole object as the API shows it: kind, apiVersion, metadata and the content. For code that works on trees:
// patches, schemas, CEL.
Result<boost::json::object> TreeOf(const Message& custom, const GroupVersionKind& gvk);

// The same without metadata.managedFields, which are often the larger part of an object.
Result<boost::json::object> UnmanagedTreeOf(const Message& custom, const GroupVersionKind& gvk);

// The reverse of TreeOf(); apiVersion and kind are dropped. kBadRequest for metadata of a wrong type.
Result<std::unique_ptr<Message>> FromTree(boost::json::object tree);

}  // namespace keelson::api
