// The controllers' names for --controllers, and the accounts that they use.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::controllers {

struct ControllerName {
  std::string_view name;     // upstream's
  std::string_view alias;    // deprecated name; empty: none
  std::string_view account;  // ServiceAccount in kube-system, bound to the role system:controller:ACCOUNT
  // The kube-controller-manager flag for the number of workers (without dashes; empty: none), and the
  // default.
  std::string_view workers_flag = {};
  int workers = 1;
};

const std::vector<ControllerName>& AllControllers();
std::map<std::string, int, std::less<>> DefaultWorkers();  // of controllers with a flag, by name

// The value of --controllers: "*" all, "foo" also foo, "-foo" not foo; the first word that names a controller
// decides.
class Selection {
 public:
  // kInvalid for an unknown controller. Controllers that only upstream has may be disabled.
  static Result<Selection> Parse(const std::vector<std::string>& words);
  Selection() = default;  // all
  bool Has(std::string_view name) const;

 private:
  std::vector<std::string> words_ = {"*"};  // with canonical names
};

// Returns the ServiceAccount of a controller. Aborts when the name is not in the table.
std::string AccountOf(std::string_view name);

}  // namespace keelson::controllers
