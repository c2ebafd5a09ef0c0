/** The version of the service and of its HTTP interface. It equals the version in package.json. */
export const version = "0.1.0"
