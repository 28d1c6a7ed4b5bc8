// Kubernetes' escaping of field names that are no CEL identifiers (k8s.io/apiserver/pkg/cel/escaping.go): "namespace" is
// __namespace__, "a-b" a__dash__b, "a.b" a__dot__b, "a/b" a__slash__b, "a__b" a__underscores__b.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace keelson::cel {

// The identifier that stands for the field. Nothing if the field cannot be named in an expression: it is empty, starts
// with a digit or has other characters than letters, digits and _ . - /.
std::optional<std::string> EscapeFieldName(std::string_view name);

// The field that the identifier stands for. Nothing if it has an unknown escape sequence.
std::optional<std::string> UnescapeFieldName(std::string_view identifier);

// Words that CEL reserves, "namespace" among them: no identifiers.
bool IsReservedWord(std::string_view word);

}  // namespace keelson::cel
