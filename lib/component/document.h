// A configuration document (YAML or JSON) as Kubernetes' components take it: its kind and version first, then
// its fields (document_reader.h). Mistakes are collected, so that one start names them all.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::component {

struct DocumentType {
  std::string_view kind;                   // KubeletConfiguration
  std::vector<std::string_view> versions;  // group/version; "group/" stands for all versions of the group
};

// How a value of a wrong type is reported.
enum class TypeWords {
  kGoField,       // json: cannot unmarshal string into Go struct field KIND.port of type int32
  kGoValue,       // port: json: cannot unmarshal string into a value of type int32
  kInvalidValue,  // port: Invalid value: must be a whole number
  kMustBe,        // port: must be a whole number
};

struct DocumentProblems {
  TypeWords words = TypeWords::kGoField;
  std::string_view kind;            // for kGoField
  std::vector<std::string> wrong;   // each makes the document useless
  std::vector<std::string> strict;  // unknown and repeated fields: a lenient program logs them, and goes on

  bool empty() const { return wrong.empty() && strict.empty(); }
};

// The mapping that `text` holds. `problems.strict` gets keys that are given twice. kBadRequest for what is no
// mapping.
Result<boost::json::object> ParseDocument(std::string_view text, DocumentProblems& problems);

// kBadRequest in upstream's words, for a document without a kind and for one of another kind or version.
Result<> CheckType(const boost::json::object& document, const DocumentType& type);

// Of a lenient program: kBadRequest with everything that is wrong; what only strict reading objects to is
// logged, in one warning.
Result<> TellProblems(const DocumentProblems& problems);
// Of a strict program: kInvalid with everything, with `separator` between two problems.
Result<> RefuseProblems(const DocumentProblems& problems, std::string_view separator = ", ");

// Of a strict program: kInvalid with Messages(): one alone as it is, several in brackets, as upstream prints an
// aggregate of errors.
Result<> RefuseAggregate(const DocumentProblems& problems);

// All problems, each a sentence of its own: what strict reading objects to comes first.
std::vector<std::string> Messages(const DocumentProblems& problems);

std::string Join(const std::vector<std::string>& problems, std::string_view separator = ", ");

}  // namespace keelson::component
