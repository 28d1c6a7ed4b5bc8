// apiserver_validating_admission_policy_* and apiserver_mutating_admission_policy_*
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace keelson::apiserver::policy {

// The error_type of a failure's message.
std::string_view ErrorTypeOf(std::string_view message);

// Counts one rule. `action`: allow, deny, audit, warn.
void CountValidation(const std::string& policy, const std::string& binding, std::string_view error_type,
                     const char* action, std::chrono::duration<double> took);
// Counts one mutation.
void CountMutation(const std::string& policy, const std::string& binding, std::string_view error_type,
                   std::chrono::duration<double> took);

}  // namespace keelson::apiserver::policy
