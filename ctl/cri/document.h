// Answers of the runtime as documents for programs: protobuf's JSON as crictl prints it.
#pragma once

#include <boost/json/value.hpp>
#include <map>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace google::protobuf {
class Message;
}

namespace keelson::ctl {

enum class CriFormat { kTable, kJson, kYaml, kGoTemplate };
// kInvalid: another word.
Result<CriFormat> ParseCriFormat(const std::string& word);

// The message in protobuf's JSON, fields in their order; scalars, lists and maps also when they are empty.
Result<boost::json::value> MessageDocument(const google::protobuf::Message& message);
// What an inspecting verb prints of one object: `status`, and each text of `info` below its key: as JSON if it is an
// object, else as text without quotes.
Result<boost::json::value> StatusDocument(boost::json::value status,
                                          const std::map<std::string, std::string>& info);

// Two spaces of indentation; YAML has sorted keys. kInvalid: a table, or a bad template.
Result<std::string> CriText(const boost::json::value& document, CriFormat format,
                            const std::string& go_template = "");
// The documents of an inspecting verb, with sorted keys: a list of them unless there is only one.
Result<std::string> StatusText(const std::vector<boost::json::value>& documents, CriFormat format,
                               const std::string& go_template);

// Reads a message from JSON or YAML with protobuf's or JSON's field names; numbers or names for enums. kInvalid:
// malformed, or an unknown field. `envs` of a container have plain text as values.
Result<> ReadMessage(const std::string& text, google::protobuf::Message& message);

}  // namespace keelson::ctl
