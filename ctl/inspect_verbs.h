// What verbs that look into nodes, pods and other objects share.
#pragma once

#include <string>

#include <boost/json/value.hpp>

#include "ctl/verb.h"

namespace keelson::ctl {

// Writes what a verb has found to standard output, in the form that the settings name.
void PrintAnswer(const Settings& settings, const std::string& table, const boost::json::value& document);

struct ObjectName {
  std::string ns, name;

  std::string Text() const { return ns + "/" + name; }
};
// Of NAMESPACE/NAME; kInvalid for anything else.
Result<ObjectName> ParseObjectName(const std::string& text);

}  // namespace keelson::ctl
