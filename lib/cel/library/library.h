// The function libraries, one a file; tables of rows in upstream's order.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lib/cel/functions/function.h"

namespace keelson::cel {

std::span<const FunctionRow> StandardOperators();
std::span<const FunctionRow> StandardConversions();
std::span<const FunctionRow> StandardTexts();      // size, contains, matches, ...
std::span<const FunctionRow> StandardTimes();      // getFullYear, ...
std::span<const FunctionRow> OptionalFunctions();  // 1.28
std::span<const FunctionRow> StringFunctions();
std::span<const FunctionRow> SetFunctions();        // 1.29
std::span<const FunctionRow> MapInsertFunctions();  // two-variable comprehensions, 1.32
std::span<const FunctionRow> ListFunctions();       // cel-go's, 1.34
std::span<const FunctionRow> KubernetesListFunctions();
std::span<const FunctionRow> UrlFunctions();
std::span<const FunctionRow> RegexFunctions();
std::span<const FunctionRow> AuthorizerFunctions();  // 1.27
std::span<const FunctionRow> QuantityFunctions();    // 1.28
std::span<const FunctionRow> IpFunctions();          // 1.30
std::span<const FunctionRow> CidrFunctions();        // 1.30
std::span<const FunctionRow> FormatFunctions();      // 1.31
std::span<const FunctionRow> SemverFunctions();      // 1.33
std::span<const FunctionRow> JsonPatchFunctions();   // of mutating policies
std::span<const FunctionRow> DeviceFunctions();      // of device selectors: includes

}  // namespace keelson::cel
