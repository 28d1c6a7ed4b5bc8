// A part of Go's text/template, for `-o go-template --template`:
//
//   {{.}} {{.status.state}}              a field, or the whole
//   {{json .status}}                     as JSON
//   {{if .x}}...{{else}}...{{end}}       false, 0, "", an empty list or map, and what is absent count as false
//   {{range .list}}...{{else}}...{{end}} over lists, and over maps in the order of keys
//   {{- and -}}                          trim white space
//
// Everything else (variables, pipes, functions, methods) is refused.
#pragma once

#include <boost/json/value.hpp>
#include <string>

#include "lib/base/error.h"

namespace keelson::ctl {

// kInvalid: the template is empty, malformed or uses more than the above, or prints a list or a map.
Result<std::string> ExecuteGoTemplate(const std::string& text, const boost::json::value& document);

}  // namespace keelson::ctl
