// What controllers are called: by --controllers, and as whom they act.
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
  std::string_view alias;    // what it was called before; empty: nothing else
  std::string_view account;  // its ServiceAccount in kube-system, with the role system:controller:ACCOUNT
  // How many keys it works on side by side is said by a flag of kube-controller-manager (without dashes;
  // empty: there is none), and if not, is this many.
  std::string_view workers_flag = {};
  int workers = 1;
};

const std::vector<ControllerName>& AllControllers();
std::map<std::string, int, std::less<>> DefaultWorkers();  // of those with a flag, by name

// What --controllers says: "*" all, "foo" that one too, "-foo" not that one; the first that names it counts.
class Selection {
 public:
  // kInvalid for a name that no controller has; one that only upstream has can be turned off.
  static Result<Selection> Parse(const std::vector<std::string>& words);
  Selection() = default;  // all
  bool Has(std::string_view name) const;

 private:
  std::vector<std::string> words_ = {"*"};  // with canonical names
};

// Of a canonical name. Aborts when there is none: a controller that is not in the table.
std::string AccountOf(std::string_view name);

}  // namespace keelson::controllers
