// Verbs that look into nodes, pods and other objects, beside those of verb.h; and what such verbs share.
#pragma once

#include <string>

#include <boost/json/value.hpp>

#include "ctl/verb.h"

namespace keelson::ctl {

// Each adds a subcommand, as those of verb.h do.
void AddWhyJob(CLI::App& parent, Run& chosen);
void AddWhyNode(CLI::App& parent, Run& chosen);
void AddWhyService(CLI::App& parent, Run& chosen);

// Writes what a verb has found to standard output, in the form that the settings name.
void PrintAnswer(const Settings& settings, const std::string& table, const boost::json::value& document);

struct ObjectName {
  std::string ns, name;

  std::string Text() const { return ns + "/" + name; }
};
// Of NAMESPACE/NAME; kInvalid for anything else.
Result<ObjectName> ParseObjectName(const std::string& text);

}  // namespace keelson::ctl
