NSt6locale5@dimensions 4
@ b
@data
4,:3,4b
