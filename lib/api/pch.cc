#include "lib/api/types.h"
